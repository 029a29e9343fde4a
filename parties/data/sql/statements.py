"""The statements that count a table where it is. Of what they select, all are counts, and codes from 0 on.

    SELECT coded.c0, coded.c3, count(*) AS n
    FROM (SELECT CASE WHEN ... THEN 0 ... ELSE -1 END AS c0, CASE ... END AS c3 FROM people) AS coded
    GROUP BY coded.c0, coded.c3

Each column's CASE (`cases.py`) stands once, in the inner SELECT: a database would not take two copies of an
expression with bound values for the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from parties.data.libraries import sa
from parties.data.sql.cases import Cases, Fate, among, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from parties.data.sql.products import Expression

Statement = Any
"""SQLAlchemy's `Select`."""

MAX_BROKEN_CELLS = 1 << 12
"""Of one constraint that a statement writes out."""


@dataclass(frozen=True)
class Rule:
    """A constraint of the study: a row breaks it whose cell is bad in one of the sets. cells: by the columns'
    codes."""

    sets: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]]

    @property
    def names(self) -> frozenset[str]:
        """Its columns."""
        return frozenset(name for names, _ in self.sets for name in names)

    @property
    def broken_cells(self) -> int:
        """How many a statement would list."""
        return sum(int(cells.sum()) for _, cells in self.sets)


@dataclass(frozen=True)
class Coded:
    """A table and what becomes of its values. relation: what FROM names. where: which rows count; None: all."""

    relation: Expression
    columns: Mapping[str, Cases]
    where: Expression = None

    def union(self, names: Sequence[str], kept_by: Collection[Rule]) -> Statement:
        """Rows by the codes of these columns and, last, how many. kept_by: rows that break one of these are
        left out."""
        needed = set(names).union(*(rule.names for rule in kept_by))
        inner = self._inner({name: self.columns[name].code() for name in self.columns if name in needed})
        codes = [self._of(inner, name) for name in names]
        chosen = sa.select(*codes, sa.func.count().label("n")).group_by(*codes)
        for rule in kept_by:
            chosen = chosen.where(sa.not_(self._breaks(inner, rule)))
        return chosen

    def broken(self, rules: Sequence[Rule]) -> Statement:
        """One row: how many rows break each, and any of them."""
        names = set().union(*(rule.names for rule in rules))
        inner = self._inner({name: self.columns[name].code() for name in self.columns if name in names})
        conditions = [self._breaks(inner, rule) for rule in rules]
        return sa.select(*(_how_many(each) for each in (*conditions, sa.or_(*conditions))))

    def fates(self, names: Sequence[str]) -> Statement:
        """One row: how many rows; then of each column in turn how many have each of its `fates`."""
        inner = self._inner({name: self.columns[name].number_of_fate() for name in names})
        sums = [
            _how_many(self._of(inner, name) == number(place))
            for name in names
            for place, _ in enumerate(self.columns[name].fates, 1)
        ]
        return sa.select(sa.func.count(), *sums).select_from(inner)

    def _inner(self, expressions: Mapping[str, Expression]) -> Expression:
        chosen = sa.select(
            *(expression.label(self._label(name)) for name, expression in expressions.items())
        ).select_from(self.relation)
        return (chosen if self.where is None else chosen.where(self.where)).subquery("coded")

    def _label(self, name: str) -> str:
        return f"c{list(self.columns).index(name)}"

    def _of(self, inner: Expression, name: str) -> Expression:
        return inner.c[self._label(name)]

    def _breaks(self, inner: Expression, rule: Rule) -> Expression:
        conditions = []
        for names, cells in rule.sets:
            place = self._of(inner, names[0])
            for axis, name in enumerate(names[1:], 1):
                place = place * number(cells.shape[axis]) + self._of(inner, name)
            bad = [number(int(cell)) for cell in np.flatnonzero(cells)]
            if bad:
                conditions.append(among(place, bad))
        return sa.or_(sa.false(), *conditions)


def _how_many(condition: Expression) -> Expression:
    return sa.func.sum(sa.case((condition, number(1)), else_=number(0)))


def fates_of(coded: Coded, names: Sequence[str], row: Sequence[Any]) -> dict[str, dict[Fate, int]]:
    """How many values of each column have each fate that occurs, from the row of `Coded.fates`."""
    counts = iter(row[1:])
    return {
        name: {fate: count for fate in coded.columns[name].fates if (count := int(next(counts) or 0))}
        for name in names
    }
