"""Which tables belong together, and the columns of a person's one row (`docs/design/linked.md` 1, 5).

Public, part of the study. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from mpc_protocols.errors import StudyInvalid
from synth.domain import Column, Domain
from synth.domain.constraints import constraint_from_spec
from synth.domain.numbers import Edged, Integer

MAX_CHILDREN = 1 << 10
"""Of one person in one table."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Of a table, after which a file is named: no part of a path."""
SINGLE_COUNTS = 16
"""Up to so many children, each number of them has a code of its own; above, neighbours share one."""


@dataclass(frozen=True)
class ChildTable:
    """One table of children. max_rows: of one person. order: the column that orders a person's children;
    None: they have no order. children: tables whose rows belong to a row of this one; key: the column of
    these and of this table that names it."""

    name: str
    max_rows: int
    order: str | None
    domain: Domain
    key: str | None = None
    children: tuple[ChildTable, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= MAX_CHILDREN:
            raise StudyInvalid(
                f"{self.name}: max_rows must be from 1 to {MAX_CHILDREN}, got {self.max_rows}."
            )

    @property
    def count(self) -> str:
        """The unfolded column of how many children there are."""
        return f"{self.name}_count"

    @property
    def ordered_by(self) -> int | None:
        """The place of the order among the table's columns, if it is one of them."""
        return self.domain.names.index(self.order) if self.order in self.domain else None

    @property
    def first_names(self) -> tuple[str, ...]:
        """The unfolded columns of A, in order."""
        return tuple(map(self.first, self.domain.names))

    @property
    def beneath(self) -> LinkedTables | None:
        """This table as that of people, with what belongs to its rows; None where nothing does."""
        return LinkedTables(self.name, str(self.key), self.domain, self.children) if self.children else None

    def first(self, column: str) -> str:
        """The unfolded column of A: the child drawn."""
        return f"{self.name}_{column}"

    def second(self, column: str) -> str:
        """The unfolded column of B: the child before it, or another one."""
        return f"{self.name}_{'other' if self.order is None else 'before'}_{column}"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the unfolded columns that it adds, in order."""
        own = self.domain.names
        return self.count, *map(self.first, own), *map(self.second, own)

    @cached_property
    def unfolded(self) -> Mapping[str, Column]:
        """The columns that it adds to a person's row, in order."""
        there = [column.with_missing() for column in self.domain.columns]
        return dict(zip(self.names, [_counts(self.max_rows), *there, *there], strict=True))

    @cached_property
    def present_together(self) -> tuple[dict[str, Any], ...]:
        """What is known of a row, as constraints are written: a child that is not there lacks all its values,
        and one that is there only those that the study lets it lack."""
        missing, none = {"missing": True}, []
        certain = [name for name in self.domain.names if not self.domain[name].missing]
        for name in self.domain.names:
            none.append({"if": {self.count: 0}, "then": {self.first(name): missing}})
            none.append({"if": {self.count: {"below": 2}}, "then": {self.second(name): missing}})
        for name in certain:
            none.append({"if": {self.first(name): missing}, "then": {self.count: 0}})
            if self.order is None:
                none.append({"if": {self.second(name): missing}, "then": {self.count: {"below": 2}}})
            elif name != certain[0]:
                none.append({"if": {self.second(name): missing}, "then": {self.second(certain[0]): missing}})
                none.append({"if": {self.second(certain[0]): missing}, "then": {self.second(name): missing}})
        none += [{"if": {self.count: 0}, "then": {own.count: 0}} for own in self.children]
        return tuple(none)


@dataclass(frozen=True)
class LinkedTables:
    """The parent table's name and columns, and the tables of children. key: the column of all of them that
    names the person."""

    parent: str
    key: str
    people: Domain
    children: tuple[ChildTable, ...]

    def __post_init__(self) -> None:
        if not self.children:
            raise StudyInvalid("Linked tables need at least one table of children.")
        self._check_tables()
        for where, domain in ((self.parent, self.people), *((one.name, one.domain) for one in self.children)):
            if self.key in domain:
                raise StudyInvalid(
                    f"The key {self.key} is among the columns of {where}: a key tells rows apart and cannot be synthesised; "
                    "take it out of the columns."
                )
        for child in self.children:
            if child.order == self.key:
                raise StudyInvalid(
                    f"{child.name} is ordered by the key {self.key}, which all rows of a person share; name another column, "
                    "or leave order out."
                )
            self._check_beneath(child)
        names = list(self.people.names)
        for child in self.tables:
            for name in child.names:
                if name in names or name == self.key:
                    raise StudyInvalid(
                        f"Unfolding {child.name} makes a column {name}, and there is one of that name already; rename it."
                    )
                names.append(name)

    def _check_beneath(self, child: ChildTable) -> None:
        """Raise `StudyInvalid` for a table whose rows have rows of their own that do not fit."""
        if child.beneath is None:
            return
        if any(own.children for own in child.children):
            raise StudyInvalid(
                f"What belongs to rows of {child.name} cannot have rows of its own: tables go as far as the rows of a "
                "person's rows."
            )
        for own in (child, *child.children):
            if child.key in (self.key, own.order) or self.key in own.domain:
                raise StudyInvalid(
                    f"{child.name} and what belongs to it need a key of their own, other than {self.key} and than an order, "
                    f"and {self.key} cannot be a column of {own.name}."
                )

    def _check_tables(self) -> None:
        """Raise `StudyInvalid` for names that no files can have beside each other: they may be those of a
        run.json from elsewhere."""
        known: dict[str, str] = {}
        for name in self.names:
            if not NAME.fullmatch(name):
                raise StudyInvalid(
                    f"A linked table must be named by letters, digits and _, beginning with a letter, got {name!r:.60}."
                )
            if (other := known.setdefault(name.casefold(), name)) != name:
                raise StudyInvalid(
                    f"The linked tables {other} and {name} differ by case alone, and files are named after them; rename one."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tables, the parent's first."""
        return self.parent, *(child.name for child in self.tables)

    @property
    def tables(self) -> tuple[ChildTable, ...]:
        """All tables of children, those of people first, then those of their rows."""
        return *self.children, *(own for child in self.children for own in child.children)

    def owner(self, name: str) -> str:
        """The table to whose rows those of a table of children belong."""
        return next(
            (child.name for child in self.children if name in (own.name for own in child.children)),
            self.parent,
        )

    @cached_property
    def unfolded(self) -> Domain:
        """The domain of a person's row. The parent's constraints hold in it."""
        columns = dict(zip(self.people.names, self.people.columns, strict=True))
        for child in self.tables:
            columns |= child.unfolded
        together = [
            constraint_from_spec(spec, columns) for child in self.tables for spec in child.present_together
        ]
        return replace(
            self.people,
            names=tuple(columns),
            columns=tuple(columns.values()),
            constraints=(*self.people.constraints, *together),
        )

    @cached_property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The workload of a study that states none."""
        found: dict[tuple[str, ...], None] = dict.fromkeys(combinations(self.people.names, 2))
        for child in self.children:
            found |= _cliques(child, self.people.names)
            for own in child.children:
                found |= _cliques(own, (*self.people.names, *child.first_names))
        return tuple(found)

    def expanded(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Columns of the unfolded domain, of which some may be named by their table."""
        of = {child.name: tuple(child.unfolded) for child in self.tables}
        return tuple(dict.fromkeys(name for one in columns for name in of.get(one, (one,))))

    def to_spec(self) -> dict[str, Any]:
        """Canonical and JSON-able: for run.json and the study's hash. Without the parent's columns."""
        return {
            "parent": self.parent,
            "key": self.key,
            "tables": [
                *(_spec(child) for child in self.children),
                *(
                    _spec(own) | {"parent": child.name, "key": child.key}
                    for child in self.children
                    for own in child.children
                ),
            ],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], unfolded: Domain) -> LinkedTables:
        """Of what `to_spec` wrote, and the domain that it made.

        Raises `StudyInvalid`, KeyError, TypeError or AttributeError for anything else.
        """
        children = tuple(
            _child_of(one, [own for own in spec["tables"] if own.get("parent") == one["name"]])
            for one in spec["tables"]
            if "parent" not in one
        )
        own = {name for child in children for one in (child, *child.children) for name in one.unfolded}
        people = unfolded.subset(name for name in unfolded.names if name not in own)
        found = cls(str(spec["parent"]), str(spec["key"]), people, children)
        if found.unfolded.sizes != unfolded.sizes:
            raise StudyInvalid("The linked tables do not make the columns of the run.")
        return found


def _cliques(child: ChildTable, owner: tuple[str, ...]) -> dict[tuple[str, ...], None]:
    """What the workload asks of a table of children. owner: the columns of whose they are."""
    drawn = child.first_names
    found: dict[tuple[str, ...], None] = dict.fromkeys(combinations([*owner, child.count], 2))
    found |= dict.fromkeys((name, one) for name in (*owner, child.count) for one in drawn)
    found |= dict.fromkeys(combinations(drawn, 2))
    found |= dict.fromkeys((child.first(name), child.second(name)) for name in child.domain.names)
    if child.ordered_by is not None:  # the earliest of many is earlier than that of few
        found[child.count, child.first(str(child.order)), child.second(str(child.order))] = None
    return found


def _spec(child: ChildTable) -> dict[str, Any]:
    return {
        "name": child.name,
        "max_rows": child.max_rows,
        **({} if child.order is None else {"order": child.order}),
        "columns": child.domain.to_spec()["columns"],
    }


def _child_of(one: Mapping[str, Any], children: Sequence[Mapping[str, Any]]) -> ChildTable:
    """Of what `_spec` wrote. children: the same of what belongs to its rows."""
    return ChildTable(
        str(one["name"]),
        int(one["max_rows"]),
        one.get("order"),
        Domain.from_spec({"columns": one["columns"]}),
        str(children[0]["key"]) if children else None,
        tuple(_child_of(own, ()) for own in children),
    )


def _counts(most: int) -> Column:
    """The column of a number of children from 0 to `most`."""
    if most <= SINGLE_COUNTS:
        return Integer(0, most)
    edges = [*range(SINGLE_COUNTS // 2), SINGLE_COUNTS // 2]
    while edges[-1] <= most:
        edges.append(max(edges[-1] + 1, edges[-1] * 5 // 4))
    return Edged(
        (*(edge for edge in edges if edge < most), most), integral=True
    )  # the last one holds its end
