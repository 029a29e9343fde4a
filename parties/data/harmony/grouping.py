"""Numbers whose digits stand in groups of three, as 1,204.50 or 1.204,50 (`[csv] thousands`). Standard
library only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

MARKS = {",": ",", ".": ".", " ": " \u00a0\u202f", "'": "'\u2019"}
"""What may stand between groups, and how it is written: a blank also as one that does not break a line."""


@dataclass(frozen=True)
class Grouping:
    """thousands: the mark between groups, one of `MARKS`. decimal: the one before the fraction."""

    thousands: str
    decimal: str

    @cached_property
    def _number(self) -> re.Pattern[str]:
        mark = f"[{MARKS[self.thousands]}]"
        return re.compile(rf"[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+(?:{re.escape(self.decimal)}[0-9]*)?")

    @cached_property
    def _removed(self) -> dict[int, None]:
        return dict.fromkeys(map(ord, MARKS[self.thousands]))

    def holds(self, text: str) -> bool:
        """Whether it is a number that has such groups, each of three digits."""
        return self._number.fullmatch(text) is not None

    def without(self, text: str) -> str:
        """Such a number without the marks; any other text as it is."""
        return text.translate(self._removed) if self.holds(text) else text
