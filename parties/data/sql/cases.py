"""One column's codes as a CASE: made from the study's column and the private file's rules by the coder
itself.

The stream's rules (`parties/data/harmony/values.py`, `parties/data/counting/coding.py`) single out a few
values: those that the study lists, markers, what a map names, NaN. Each of them is coded here by the very
functions that code a block, and becomes a WHEN; so does one that stands for all the others. What is left is a
comparison of numbers or days with the limits of bins (`numbers.py`). Nothing is restated, so nothing can
differ but how the database compares two values, which the tests try against each database.

    text        values byte by byte; a declared number also in any plain decimal writing, by a pattern
    numbers     in their own type; days, booleans likewise
    otherwise   -1: refused

What cannot be said so in every dialect is refused with a sentence, and a view can do it: expressions and
filters of the private file, texts that are to be read as numbers or days, moments with a zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from parties.data.libraries import sa
from parties.data.sql.thresholds import written

if TYPE_CHECKING:
    from parties.data.sql.products import Expression

MAX_LIST = 1000
"""Of one IN: Oracle allows no more."""


class Untranslated(Exception):
    """What the stream can do and a statement cannot: a phrase behind "column "x": ". Holds no value."""


@dataclass(frozen=True)
class Fate:
    """What becomes of a value: its code, -1 if it is refused for this reason; and what the owner's survey
    counts it as."""

    code: int
    reason: str = ""
    clamped: bool = False
    absent: bool = False
    marked: bool = False
    mapped: bool = False
    other: bool = False

    @property
    def plain(self) -> bool:
        """Whether a survey has nothing to count."""
        return not (self.reason or self.clamped or self.absent or self.marked or self.mapped or self.other)


UNREAD = Fate(-1, "the database holds something that cannot be read as its type says")


@dataclass(frozen=True)
class When:
    """Values for which the condition holds, and no earlier one. value: the code, where it is the value
    itself."""

    condition: Expression
    fate: Fate
    value: Expression = None


@dataclass(frozen=True)
class Cases:
    """What becomes of a column's values. otherwise: of those that no condition holds for; it is refused."""

    whens: tuple[When, ...]
    otherwise: Fate

    @property
    def fates(self) -> tuple[Fate, ...]:
        """That a survey counts."""
        return tuple(
            dict.fromkeys(
                fate for fate in (*(when.fate for when in self.whens), self.otherwise) if not fate.plain
            )
        )

    @cached_property
    def bound(self) -> int:
        """How many values a statement binds."""
        return sum(isinstance(part, sa.BindParameter) for part in sa.sql.visitors.iterate(self.code()))

    def code(self) -> Expression:
        """The code, 0..size-1, or -1."""
        return sa.case(
            *(
                (one.condition, number(one.fate.code) if one.value is None else one.value)
                for one in self.whens
            ),
            else_=number(-1),
        )

    def number_of_fate(self) -> Expression:
        """The place of a value's fate among `fates`, from 1; 0: none of them."""
        places = {fate: place for place, fate in enumerate(self.fates, 1)}
        return sa.case(
            *((one.condition, number(places.get(one.fate, 0))) for one in self.whens),
            else_=number(places[self.otherwise]),
        )


def among(x: Expression, values: Sequence[Expression]) -> Expression:
    """Whether x is one of the values."""
    lists = [values[start : start + MAX_LIST] for start in range(0, len(values), MAX_LIST)]
    return sa.or_(*(x == each[0] if len(each) == 1 else x.in_(each) for each in lists))


def number(value: int, scale: int = 0) -> Expression:
    """value / 10^scale as a statement says it: digits that were made here."""
    return sa.literal_column(written(value, scale), sa.Integer() if not scale else sa.Numeric())
