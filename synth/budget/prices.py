"""What marginals get of a budget for the least noise of all: in proportion to their cells^(2/3).

A measurement of n cells at variance v has about sqrt(2 / pi) n sqrt(v) of noise (L1) and costs 1 / (2 v): of
all measurements that cost a given sum, those have the least noise together whose costs are in proportion to
n^(2/3). Integers only, so that all parties compute the same.
"""

from __future__ import annotations

from fractions import Fraction

PRICE_BITS = 20


def two_thirds(x: int, unit: int = 1) -> Fraction:
    """(x / unit)^(2/3), rounded down to 20 bits after the point."""
    return Fraction(_cube_root((x * x << 3 * PRICE_BITS) // (unit * unit)), 1 << PRICE_BITS)


def _cube_root(x: int) -> int:
    """The largest integer whose cube is at most x >= 0."""
    if x == 0:
        return 0
    root = 1 << -(-x.bit_length() // 3)
    while True:  # Newton from above
        better = (2 * root + x // (root * root)) // 3
        if better >= root:
            return root
        root = better
