"""How a dry run of many batches ends: after `SEEN` of them the others are not made, but told.

A batch costs more of the budget as a run goes on, as its noise must fall: by the same factor in each of the
rest as in the last `LIKE` that were made. What the others send is taken to be what these have sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

SEEN: Final = 16
"""Batches that a dry run makes: 128 picks."""
LIKE: Final = 8
"""The last of these stand for all others."""


def batches_left(costs: Sequence[Fraction], left: Fraction) -> int:
    """How many batches more the budget pays for. costs: rho of each batch so far, LIKE + 1 at least. left:
    rho."""
    growth = max(1.0, float(costs[-1] / costs[-1 - LIKE]) ** (1 / LIKE))
    cost, rest, count = float(costs[-1]), float(left), 0
    while rest > 0:
        cost *= growth
        rest -= cost
        count += 1
    return count
