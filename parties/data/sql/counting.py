"""A custodian's counts, and what `check` shows its owner, by statements on the database: only counts travel.

First one statement (or a few, where a product takes few bound values) counts what does not fit and what the
owner may know; then one GROUP BY per union of cliques counts the cells, of which at most as many come back as
the union has. Every result adds up to the same number of rows, or the table has changed meanwhile and is
refused: a second safeguard where the product has a snapshot, the only one where it has none.

Refused like the stream does (`parties/data/counting/scan.py`), without a row's place: no row was here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import DataRefused
from parties.data.counting.scan import nobody, too_many
from parties.data.libraries import sa
from parties.data.sql.cases import Fate
from parties.data.sql.grouping import Row
from parties.data.sql.statements import Statement, fates_of
from parties.data.sql.translation import coded, refused, rules
from parties.data.survey import ColumnSurvey, RefusedRows, Survey
from synth.domain.keys import BROKEN_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique
    from parties.data.counting.scan import Unit
    from parties.data.source import Source
    from synth.domain import Domain


class PushedDown:
    """A table that is counted where it is. rows: that count; clamped, absent: by column; all private.

    Raises `DataRefused` for what no statement can say, and for a table that cannot be read.
    """

    def __init__(
        self, source: Source, domain: Domain, *, max_rows: int, unit: Unit | None, allow_empty: bool
    ) -> None:
        self._source, self._domain, self._unit = source, domain, unit
        self._max_rows, self._allow_empty = max_rows, allow_empty
        self._grouping = source.grouping()
        self._coded = coded(source, self._grouping, domain, unit)
        self._rules = rules(source, domain)

    def _fetch(self, statement: Statement, most: int) -> list[Row]:
        found = self._source.fetch(self._grouping, statement, most + 1)
        if len(found) > most:
            raise self._changed
        return found

    @property
    def _changed(self) -> DataRefused:
        return DataRefused(
            f"{self._source.label} changed while it was counted; run again when nobody writes to it."
        )

    @cached_property
    def _fates(self) -> dict[str, dict[Fate, int]]:
        found: dict[str, dict[Fate, int]] = {}
        totals: set[int] = set()
        for names in self._portions():
            (row,) = self._fetch(self._coded.fates(names), 1)
            totals.add(int(row[0]))
            found |= fates_of(self._coded, names, row)
        if len(totals) != 1:
            raise self._changed
        (self._read,) = totals
        return found

    def _portions(self) -> Iterator[tuple[str, ...]]:
        """The columns, as many at a time as the product takes bound values."""
        most, sizes = self._grouping.product.max_values, dict[str, int]()
        for name in self._domain.names:
            sizes[name] = self._values((name,))
        portion: list[str] = []
        for name, size in sizes.items():
            if portion and sum(sizes[one] for one in portion) + size > most:
                yield tuple(portion)
                portion = []
            portion.append(name)
        yield tuple(portion)

    def _values(self, names: Sequence[str]) -> int:
        """How many values a statement about these columns binds. Raises `DataRefused` for more than the
        product takes."""
        product = self._grouping.product
        size = sum(self._coded.columns[name].bound for name in names)
        if size > product.max_values:
            raise refused(
                self._source,
                f"columns {', '.join(names)} have more values and bins than the {product.max_values} that one statement of "
                f"{product.name} may be given; leave push_down out",
            )
        return size

    @cached_property
    def broken(self) -> dict[str, int]:
        """How many rows break each constraint, by its text; private."""
        self._left_out = 0
        if not self._rules:
            return {}
        (row,) = self._fetch(self._coded.broken(list(self._rules.values())), 1)
        numbers = [int(each or 0) for each in row]
        if self._leaves_out:
            self._left_out = numbers[-1]
        return dict(zip(self._rules, numbers, strict=False))

    @property
    def _leaves_out(self) -> bool:
        return self._domain.broken_rows != BROKEN_ROWS[0]

    @cached_property
    def rows(self) -> int:
        """That count."""
        _, _ = self._fates, self.broken
        return self._read - self._left_out

    def problems(self) -> list[str]:
        """What a run would refuse, each in a sentence."""
        label, found = self._source.label, list[str]()
        if self._unit is not None:
            name, bound = self._unit
            above, absent = self._source.units(name, bound)
            if above:
                found.append(too_many(self._source, self._unit))
            if absent and not self._source.leaves_out:
                found.append(nobody(self._source, name))
        for name, fates in self._fates.items():
            found += [
                f'{label}, column "{name}": {reason}.'
                for reason in dict.fromkeys(fate.reason for fate in fates if fate.reason)
            ]
        if found:  # codes of -1 mean nothing to a constraint
            return found
        if not self._leaves_out:
            found += [
                f"{label}: a row breaks the study's constraint {text}; correct it, or agree on broken_rows = "
                f'"{BROKEN_ROWS[1]}".'
                for text, count in self.broken.items()
                if count
            ]
        if self.rows > self._max_rows:
            found.append(
                f"{label} has more rows than the study's max_rows = {self._max_rows}; the parties must agree on a larger one."
            )
        if self.rows == 0 and not self._allow_empty:
            found.append(
                f"{label} has no rows; if that is right, set allow_empty = true in the private file."
            )
        return found

    def check_again(self) -> None:
        """Behind the last union: raise `DataRefused` if a person's rows have become too many meanwhile."""
        if self._unit is not None and self._source.outgrown(*self._unit):
            raise DataRefused(too_many(self._source, self._unit))

    def cells(self, union: Clique) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells of a union of cliques that are not empty, in row-major order of its columns, and their
        counts."""
        self._values(union)
        sizes = [self._domain.sizes[name] for name in union]
        kept_by = tuple(self._rules.values()) if self._leaves_out else ()
        found = self._fetch(self._coded.union(union, kept_by), math.prod(sizes))
        table = np.asarray([[int(each) for each in row] for row in found], np.int64).reshape(
            -1, len(union) + 1
        )
        codes, counts = table[:, :-1], table[:, -1]
        if (codes < 0).any() or (codes >= np.asarray(sizes)).any() or counts.sum() != self.rows:
            raise self._changed
        return np.ravel_multi_index(tuple(codes.T), sizes).astype(np.int64), counts

    def _how_many(self, name: str, flag: str) -> int:
        return sum(count for fate, count in self._fates[name].items() if getattr(fate, flag))

    @property
    def clamped(self) -> dict[str, int]:
        """Numbers outside low..high, by column."""
        return {name: self._how_many(name, "clamped") for name in self._domain.names}

    @property
    def absent(self) -> dict[str, int]:
        """Missing values, by column."""
        return {name: self._how_many(name, "absent") for name in self._domain.names}

    @property
    def _unnamed(self) -> int:
        """How many rows have no identifier, and are left out."""
        named = self._coded.where
        if named is None:
            return 0
        ((number,),) = self._fetch(
            sa.select(sa.func.count()).select_from(self._coded.relation).where(sa.not_(named)), 1
        )
        return int(number)

    def survey(self, before: Sequence[str]) -> Survey:
        """What the owner may know of its columns. before: problems that were found in the names."""
        problems = (*before, *self.problems())
        columns = []
        for name, fates in self._fates.items():
            reasons = dict.fromkeys(fate.reason for fate in fates if fate.reason)
            refused = tuple(
                RefusedRows(reason, sum(count for fate, count in fates.items() if fate.reason == reason), ())
                for reason in reasons
            )
            clamped, absent, marked, mapped, other = (
                self._how_many(name, flag) for flag in ("clamped", "absent", "marked", "mapped", "other")
            )
            columns.append(ColumnSurvey(name, clamped, absent, marked, mapped, other, refused))
        fits = not any(fate.reason for fates in self._fates.values() for fate in fates)
        return Survey(
            problems,
            self.rows if fits else self._read,
            unnamed=self._unnamed,
            columns=tuple(columns),
            broken=self.broken if fits else {},
        )
