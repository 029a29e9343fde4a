"""Bins of a column's values from its noisy one-way marginal: nested, public, the same at every party.

A bin is a function of a column's value and of released integers, so a marginal over bins has the sensitivity
of one over values: a row lies in exactly one of its cells. Everything here is integer arithmetic, so that all
parties derive the same bins, bit for bit.

    order       values as coded where the codes have an order, else by noisy count, descending, ties by code
    split       start with one bin; of the bins with at least two values and a noisy mass above 3 sigma (a negative count is 0),
                split the heaviest, the first among equals, where its two parts are most alike, at the first such place
    levels      the partitions into 2, 4, 8, 16 and 32 bins, and the last one if splitting ends between them
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from synth.domain import Column

SIZES = (2, 4, 8, 16, 32)
"""Of the partitions kept; a column of more values than the last enters joint marginals by its bins only."""
DEVIATIONS = 3
Bins = tuple[int, ...]


def is_ordered(column: Column) -> bool:
    """Whether neighbouring codes are alike: numbers, days, ordered values, and codes that mean themselves."""
    return column.ordered


def partitions(counts: Sequence[int], sigma2: Fraction, *, ordered: bool) -> list[Bins]:
    """Nested partitions of the values, the coarsest first, each as the bin of every value; the values
    themselves are none.

    counts: the noisy one-way marginal. sigma2: of its noise in each cell.
    """
    values = len(counts)
    order = list(range(values)) if ordered else sorted(range(values), key=lambda code: (-counts[code], code))
    below = [0, *accumulate(max(0, counts[code]) for code in order)]

    def mass(part: tuple[int, int]) -> int:
        return below[part[1]] - below[part[0]]

    parts, found = [(0, values)], list[Bins]()
    while len(parts) < min(values - 1, SIZES[-1]):
        heavy = [p for p in parts if p[1] - p[0] > 1 and mass(p) ** 2 > DEVIATIONS**2 * sigma2]
        if not heavy:
            break
        start, stop = max(heavy, key=lambda part: (mass(part), -part[0]))
        cut = min(
            range(start + 1, stop),
            key=lambda place: (abs(2 * below[place] - below[start] - below[stop]), place),
        )
        at = parts.index((start, stop))
        parts[at : at + 1] = [(start, cut), (cut, stop)]
        if len(parts) in SIZES:
            found.append(_bins(parts, order))
    if len(parts) > 1 and len(parts) not in SIZES:
        found.append(_bins(parts, order))
    return found


def _bins(parts: Sequence[tuple[int, int]], order: Sequence[int]) -> Bins:
    found = [0] * len(order)
    for number, (start, stop) in enumerate(parts):
        for code in order[start:stop]:
            found[code] = number
    return tuple(found)
