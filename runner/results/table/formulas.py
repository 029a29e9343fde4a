"""Texts that a spreadsheet runs when it opens a CSV: "CSV injection" (OWASP). Names and categories come from
the study.

A text is one if it begins with =, +, -, @ (also as wide as an ideograph: U+FF1D and the like), a tab or the end of a
line, and is no number. An apostrophe before
it keeps it a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.domain import Domain

STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")


def is_formula(text: object) -> bool:
    """Whether a spreadsheet would run it."""
    if not isinstance(text, str) or not text.startswith(STARTS):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def harmless(value: Any) -> Any:
    """The value, with an apostrophe before a text that is one."""
    return f"'{value}" if is_formula(value) else value


def formulas(domain: Domain) -> Iterator[tuple[str, str | None]]:
    """Columns whose names are such texts, with None, and values that are, each with its column."""
    for name, column in zip(domain.names, domain.columns, strict=True):
        if is_formula(name):
            yield name, None
        yield from ((name, str(value)) for value in column.listed if is_formula(value))
