"""Single values coded as the stream codes blocks: what the WHENs of a CASE are made from (`cases.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parties.data.counting.coding import Coder
from parties.data.harmony.values import Change
from parties.data.sql.cases import Fate, When, among
from parties.data.sql.kinds import Kind
from synth.domain import Column

if TYPE_CHECKING:
    from parties.data.harmony.recipe import Step
    from parties.data.sql.products import Expression


class Probe:
    """Codes single values as the stream codes blocks."""

    def __init__(self, column: Column, step: Step, kind: Kind) -> None:
        self.column, self.step, self.kind = column, step, kind

    def __call__(self, value: object) -> Fate:
        """The fate of one value; None: of a missing one."""
        change, coder = Change(self.step), Coder(self.column)
        codes, misfits = coder.code(change(pa.array([value], self.kind.arrow)))
        return Fate(
            -1 if misfits else int(codes[0]),
            misfits[0].reason if misfits else "",
            bool(coder.clamped),
            bool(coder.absent),
            bool(change.marked),
            bool(change.mapped),
            bool(coder.unlisted),
        )

    def fates(self, values: Sequence[object]) -> list[Fate]:
        """Of each."""
        if not self.step.plain or self.kind.group != "text":
            return list(map(self, values))
        codes, misfits = Coder(self.column).code(
            pa.array(values, self.kind.arrow)
        )  # listed texts: nothing to count
        reasons = {int(row): one.reason for one in misfits if one.rows is not None for row in one.rows}
        return [
            Fate(-1, reasons[row]) if row in reasons else Fate(int(code)) for row, code in enumerate(codes)
        ]

    @property
    def named(self) -> list[str]:
        """Texts that the private file singles out."""
        return [*self.step.missing, *(given for given, _ in self.step.values)]

    @property
    def listed(self) -> list[str]:
        """And those that the study does."""
        return list(dict.fromkeys([*self.named, *(self.column.writings() or ())]))


def grouped(x: Expression, candidates: Sequence[tuple[Any, Expression]], probe: Probe) -> Iterator[When]:
    """A WHEN for each fate of single values; candidates: the value, and how a statement names it."""
    fates = probe.fates([value for value, _ in candidates])
    pairs = sorted(zip(fates, range(len(fates)), strict=True), key=lambda pair: (repr(pair[0]), pair[1]))
    for fate, places in groupby(pairs, key=lambda pair: pair[0]):
        yield When(among(x, [candidates[place][1] for _, place in places]), fate)
