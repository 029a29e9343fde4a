"""Numbers and lists as people write them; every figure in the report's text and tables passes through here.

A number and its unit are joined by a no-break space.
"""
# ruff: noqa: RUF001 - the multiplication sign and superscripts are meant

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from synth.budget.rounding import rounded_up


def clipped(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `most` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def typeset(text: str) -> str:
    """Text of the program with typographic apostrophes."""
    return text.replace("'", "’")


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nobody"


def spelled(count: int) -> str:
    """Small counts as words."""
    words = (
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    )
    return words[count] if 0 <= count < len(words) else whole(count)


def whole(value: float) -> str:
    """An integer with thousands separated."""
    return f"{round(value):,}"


def plain(value: float, digits: int = 3) -> str:
    """A number to `digits` significant digits; tiny and huge ones as powers of ten."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-4 <= abs(value) < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return power if mantissa == "1" else f"{mantissa}\u00a0×\u00a0{power}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bound(value: float, digits: int = 3) -> str:
    """`plain` of what something is at most: never less than it is."""
    return plain(rounded_up(value, digits), digits)


def percent(share: float, decimals: int = 1) -> str:
    """A share as a percentage."""
    text = f"{100 * share:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "\u00a0%"


def size(count: float) -> str:
    """A number of bytes in decimal units."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{plain(count / scale)}\u00a0{unit}"
    return f"{whole(count)}\u00a0B"


def duration(seconds: float) -> str:
    """Seconds, or minutes and hours once they are many."""
    if seconds < 0.9995:
        return f"{round(1000 * seconds)}\u00a0ms"
    if seconds < 120:
        return f"{plain(seconds)}\u00a0s"
    minutes = round(seconds / 60)
    return f"{minutes}\u00a0min" if minutes < 120 else f"{minutes // 60}\u00a0h {minutes % 60}\u00a0min"


def moment(text: str) -> str:
    """An ISO time as a date and an hour; anything else as it is."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = f" {time.tzname()}" if time.tzinfo else ""
    return f"{time.day} {time:%B %Y}, {time:%H:%M}{zone}"
