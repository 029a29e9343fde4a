"""Exact numbers in texts that come from elsewhere: read without trusting their size.

`Fraction` also takes "1e999999999", which is a number of a thousand million digits. Here a number is what
`str` writes of one that is at least 0: digits, or digits over digits.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

MAX_DIGITS: Final = 617
"""Of a numerator or denominator: 2,048 bits."""
_NUMBER: Final = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:/[1-9][0-9]{{0,{MAX_DIGITS - 1}}})?")


def rational(text: object) -> Fraction:
    """The number of a text. Raises ValueError for anything but what `str` writes of a rational of at least 0."""
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError("A number is digits, or digits over digits.")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("A number is in its lowest terms.")
    return number
