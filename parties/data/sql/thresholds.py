"""Where the bins of doubles begin among whole and decimal numbers: so that statements compare exact numbers
with exact numbers.

A bin is decided by the double nearest to a value (`parties/data/counting/coding.py`). Whether a database
rounds a decimal to the nearest double, and when, differs from product to product; a comparison of two
decimals does not. So a limit e becomes the least number of the column's own scale whose nearest double is at
least e: for numbers x of that scale, double(x) >= e if and only if x is at least that. (Rounding is monotone,
so such a number exists; it lies at or just behind the middle between e and the double below.)
"""

from __future__ import annotations

import math
from fractions import Fraction


def least(limit: float, scale: int = 0) -> int:
    """The smallest n with float(n / 10^scale) >= limit; both finite."""
    unit: int = 10**scale
    below = math.nextafter(limit, -math.inf)
    middle = (Fraction(limit) + (Fraction(below) if math.isfinite(below) else Fraction(limit))) / 2
    number = math.ceil(middle * unit)
    while nearest(number, scale) < limit:
        number += 1
    return number


def nearest(number: int, scale: int) -> float:
    """The double nearest to number / 10^scale; infinite beyond the largest."""
    try:
        return float(Fraction(number, 10**scale))
    except OverflowError:
        return math.copysign(math.inf, number)


def written(number: int, scale: int) -> str:
    """number / 10^scale in plain digits: the only numbers that are written into a statement."""
    sign, digits = "-" if number < 0 else "", str(abs(number)).zfill(scale + 1)
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
