"""Whom a promise protects, against which change, and what a run under one notion counts for under another.

Two tables are neighbours when they differ in the rows of one unit, which are there or not (add-remove) or
hold other values (replace). A run's rho bounds what it tells apart of ITS neighbours; an account adds up rho
for neighbours of its own. If those are at most k steps of the run's neighbours apart, the run counts k^2 rho
for them (`Notion.steps`; a fraction: `spending`).

Source: group privacy of zCDP, Bun and Steinke 2016, proposition 1.9; each step count with its proof:
`docs/design/accounts.md`. Public; standard library only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from mpc_protocols.functionality import Adjacency


@dataclass(frozen=True)
class ProtectedUnit:
    """A row (`id` is empty), or all the rows of one identifier with bounds on how many there are.

    id: the key columns. whole: everything under one identifier, however many rows, counts at most once (a
    vertical run). unread: what an older ledger says in words that this version does not understand.
    """

    id: tuple[str, ...] = ()
    max_rows: int = 1
    max_custodians: int = 1
    whole: bool = False
    unread: str = ""

    @property
    def rows(self) -> int:
        """The most rows of one unit over all custodians."""
        return self.max_rows * self.max_custodians

    @property
    def words(self) -> str:
        """The unit in words, as reports state it."""
        if self.unread:
            return self.unread
        if self.whole:
            return f"everything that the owners hold under one identifier ({', '.join(self.id)})"
        if not self.id:
            return "one row"
        return (
            f"everybody who shares one {', '.join(self.id)}: at most {self.max_rows} rows per custodian, "
            f"at most {self.max_custodians} custodians"
        )

    @property
    def short(self) -> str:
        """The unit in a table's column: row, person (3 rows), person_id."""
        if self.unread:
            return self.unread
        name = "+".join(self.id)
        return name if self.whole else f"{name} ({_rows(self.rows)})" if self.id else "row"

    @property
    def key(self) -> str:
        """The unit as `cap_unit` in a private file names it."""
        if not self.id:
            return '"row"'
        names = [json.dumps(name) for name in self.id]
        listed = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        return f"{{ id = {listed}, max_rows = {self.max_rows}, max_custodians = {self.max_custodians} }}"

    def to_text(self) -> str:
        """For a ledger's file; `from_text` reads it."""
        if self.unread:
            return self.unread
        return json.dumps(
            {
                "id": list(self.id),
                "max_rows": self.max_rows,
                "max_custodians": self.max_custodians,
                "whole": self.whole,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> ProtectedUnit:
        """A unit as a ledger states it; versions before 3 stated it in words."""
        if text in ("row", "one row"):
            return cls()
        if found := _WHOLE.fullmatch(text):
            return cls(tuple(found["id"].split(", ")), whole=True)
        if found := _PERSON.fullmatch(text):
            return cls((found["id"],), int(found["rows"]), int(found["custodians"]))
        try:
            form = json.loads(text)
            return cls(tuple(form["id"]), form["max_rows"], form["max_custodians"], form["whole"])
        except (ValueError, KeyError, TypeError):
            return cls(unread=text)


_WHOLE = re.compile(r"everything that the owners hold under one identifier \((?P<id>.+)\)")
_PERSON = re.compile(
    r"everybody who shares one (?P<id>.+): at most (?P<rows>\d+) rows per custodian, at most (?P<custodians>\d+) custodians"
)


@dataclass(frozen=True)
class Notion:
    """What a guarantee is about: a unit, and what may happen to its rows."""

    unit: ProtectedUnit
    adjacency: Adjacency

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{self.unit.words} ({self.adjacency})"

    @property
    def of_account(self) -> Notion:
        """What an account whose first run has this notion adds up for: of a vertical run's identifier, one
        row."""
        return replace(self, unit=replace(self.unit, whole=False))

    def steps(self, run: Notion) -> Fraction | None:
        """How many of the run's steps apart this notion's neighbours are, at least 1: the run counts
        `steps`^2 of its rho.

        A fraction where the rows of the units have no whole ratio: which releases count its square,
        `spending` says.

        None if the run says nothing about this notion: a unit of several rows, or of another identifier, does
        not bound what is added up for this one, and a run under replace does not hide how many rows there
        are.
        """
        if self.adjacency == "add-remove" and run.adjacency == "replace":
            return None
        doubled = 1 if self.adjacency == run.adjacency else 2  # replaced: once taken away, once added
        rows = self._unit_steps(run.unit)
        return None if rows is None else doubled * rows

    def _unit_steps(self, run: ProtectedUnit) -> Fraction | None:
        own = self.unit
        if own.unread or run.unread:
            return Fraction(1) if own == run else None
        if not run.id:
            return Fraction(own.rows)  # row by row; 1 if a row is what is protected
        if run.id != own.id:
            return None
        return Fraction(1) if run.whole else max(Fraction(1), Fraction(own.rows, run.rows))

    def why_not(self, run: Notion) -> str:
        """Why `steps` is None, as the end of a sentence."""
        if self.adjacency == "add-remove" and run.adjacency == "replace":
            return "a run under replace does not hide how many rows there are"
        if not self.unit.id and run.unit.id:
            return "a sum for single rows cannot say what it tells about somebody with several"
        return "it protects another unit"


def covering(notions: list[Notion]) -> Notion | None:
    """The least notion for which all of these can be counted; None if there is none (units of different
    identifiers)."""
    units = {notion.unit for notion in notions}
    if not units or any(unit.unread for unit in units) or len({unit.id for unit in units if unit.id}) > 1:
        return None
    widest = max(units, key=lambda unit: (bool(unit.id), unit.rows))
    adjacency: Adjacency = (
        "replace" if any(notion.adjacency == "replace" for notion in notions) else "add-remove"
    )
    return Notion(widest, adjacency).of_account


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
