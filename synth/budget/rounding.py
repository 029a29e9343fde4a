"""How a bound is shown: never as less than it is."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

_EXACT = 1e-9  # relative: what an epsilon in floating point may be off by; the next digit up would claim more than is known


def rounded_up(bound: float, digits: int = 4) -> float:
    """The least number of so many significant digits that is not below a bound, such as an epsilon that has
    been spent.

    A bound that exceeds such a number by less than 1e-9 of itself counts as that number.
    """
    if not math.isfinite(bound) or bound <= 0:
        return bound
    nearest = float(f"{bound:.{digits}g}")
    if nearest >= bound * (1 - _EXACT):
        return nearest
    return float(Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(bound)))
