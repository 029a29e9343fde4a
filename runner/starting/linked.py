"""A custodian's linked tables looked at for a study: the key, an order, how many rows a person has, and each
table's columns.

Private like the tables, as `proposals` says; the custodian confirms it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import UsageError
from parties.data.counting.coding import written
from parties.data.linked.opening import open_source
from runner.starting.proposals import MAX_DISTINCT, Proposal, Texts, texts_of
from synth.linked.tables import MAX_CHILDREN

if TYPE_CHECKING:
    from parties.data.location import Location

BEYOND = 0.02
"""The share of people that may have more rows than the bound proposed."""


@dataclass(frozen=True)
class ChildProposal:
    """One table of children. parent: to whose rows its own belong, by the column `key` of both. order: a
    column of days or times that every row has; None: there is none."""

    name: str
    parent: str
    key: str
    max_rows: int = field(repr=False)
    order: str | None
    columns: Sequence[Proposal]


@dataclass(frozen=True)
class LinkedProposal:
    """people: columns of the parent table. notes: what a run would refuse or cannot decide."""

    parent: str
    key: str
    people: Sequence[Proposal]
    children: Sequence[ChildProposal]
    notes: tuple[str, ...] = field(repr=False)


def table_name(stem: str) -> str:
    """What a table of this file may be called in a study."""
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower()
    return name if name[:1].isalpha() else f"table_{name}"


def linked_proposal(places: Mapping[str, Location], key: str | None) -> LinkedProposal:
    """Look at all rows of the tables, the parent's first. key: the column of all that names the person; None:
    look for it.

    Raises `UsageError` where no column, or more than one, can be the key, and `DataRefused` for a table that
    cannot be read.
    """
    texts = {name: texts_of(place) for name, place in places.items()}
    parent, *names = places
    key = _key(texts, key)
    persons = _persons(places[parent], key)
    if max(persons.values(), default=1) > 1:
        raise UsageError(
            f"--linked: {key} names a row of {places[parent].label} twice, and the table of people, which comes first, has "
            "one row a person; name another --key, or another table first."
        )
    owners = {name: _owner(name, places, texts, key) for name in names}
    keys = {key, *(own for _, own in owners.values())}
    notes = [*_of_dialects(places), *_of_values(parent, texts[parent], keys)]
    children = []
    for name, (owner, own_key) in owners.items():
        rows, known = _persons(places[name], own_key), persons
        whose = f"to nobody in {parent}"
        if owner != parent:
            known, whose = _persons(places[owner], own_key), f"to no row of {owner}"
            notes.append(f"{name}: its rows are taken to belong to those of {owner}, by {own_key}")
        orphans = sum(many for one, many in rows.items() if one not in known)
        if orphans:
            notes.append(f"{name}: {orphans:,} rows belong {whose}, and a run refuses them")
        notes += _of_values(name, texts[name], keys)
        columns = _columns(texts[name], keys)
        dated = [
            one.name
            for one in columns
            if {"date", "datetime"} & set(dict(one.keys).values()) and "missing" not in dict(one.keys)
        ]
        children.append(ChildProposal(name, owner, own_key, _bound(rows), next(iter(dated), None), columns))
    return LinkedProposal(parent, key, _columns(texts[parent], {key}), children, tuple(notes))


def _key(texts: Mapping[str, Texts], wanted: str | None) -> str:
    """The column that names the person: no two rows of the parent share it, and of such the most tables have
    it."""
    parent, *children = texts
    tables = {name: sum(name in texts[child].columns for child in children) for name in texts[parent].columns}
    if wanted is not None:
        if not tables.get(wanted):
            raise UsageError(
                f"--key {wanted} is not a column of the table of people and of what belongs to them; name one that is."
            )
        return wanted
    able = [name for name in tables if tables[name] and _names_rows(texts[parent], name)]
    able = [name for name in able if tables[name] == max(tables[one] for one in able)]
    if len(able) != 1:
        which = f"{', '.join(able)} could all be it" if able else "none could be it"
        raise UsageError(
            f"--linked: the key is the column of all tables that names one row of {parent} and the rows of its person in the "
            f"others, and {which}; name it by --key COLUMN, and give the table of people first."
        )
    return able[0]


def _owner(
    name: str, places: Mapping[str, Location], texts: Mapping[str, Texts], key: str
) -> tuple[str, str]:
    """To whose rows those of a table belong, and by which column: to people by `key`; or to rows of another
    table by a column that names each row there, where this one does not name people, or has several rows of
    one such name and all such names are there.

    Raises `UsageError` where that is none, or cannot be told.
    """
    parent, *others = texts
    own = texts[name].columns
    of_people = key in own

    def several(other: str, column: str) -> bool:
        rows = _persons(places[name], column)
        return max(rows.values(), default=0) > 1 and rows.keys() <= _persons(places[other], column).keys()

    found = [
        (other, column)
        for other in others
        for column in own
        if other != name and column != key and _names_rows(texts[other], column)
        if not of_people or several(other, column)
    ]
    if not found and of_people:
        return parent, key
    if not found:
        raise UsageError(
            f"--linked: which rows those of {name} belong to cannot be told: it has no column {key}, and no column that names "
            "each row of another table; add one."
        )
    if len(found) > 1:
        which = " and ".join(f"{column} of {other}" for other, column in found)
        raise UsageError(
            f"--linked: which rows those of {name} belong to cannot be told: {which} could all name them; leave the others out."
        )
    [(owner, column)] = found
    if key not in texts[owner].columns:
        raise UsageError(
            f"--linked: {name} belongs to rows of {owner}, which has no column {key}; tables go as far as the rows of a "
            "person's rows."
        )
    return owner, column


def _names_rows(texts: Texts, column: str) -> bool:
    """Whether every row has a value of the column, and no two the same, as far as they were looked at."""
    values = texts.columns.get(column)
    if not values or max(values.values()) > 1:
        return False
    return len(values) > MAX_DISTINCT or sum(values.values()) == texts.rows


def _persons(place: Location, key: str) -> Counter[str]:
    """How many rows each person has in a table."""
    found: Counter[str] = Counter()
    with open_source(place) as source:
        for batch in source.batches([key]):
            found.update(written(value) for value in batch.column(0).to_pylist() if value is not None)
    return found


def _bound(rows: Mapping[str, int]) -> int:
    """What nearly all people stay below, rounded up."""
    if not rows:
        return 1
    nearly = int(np.quantile(list(rows.values()), 1 - BEYOND, method="higher"))
    step = int(max(1, 5 * 10 ** (len(str(nearly)) - 2)))
    return min(MAX_CHILDREN, int(-(-nearly // step) * step))


def _columns(texts: Texts, keys: Set[str]) -> list[Proposal]:
    """Of a table without keys. Linked tables are read as they are written: no rule for reading them
    otherwise stands here."""
    return [replace(one, markers=(), spellings=()) for one in texts.proposals if one.name not in keys]


def _of_values(table: str, texts: Texts, keys: Set[str]) -> list[str]:
    """What a custodian has to rewrite, since [harmonise] is not read for linked tables."""
    said = []
    for one in texts.proposals:
        if one.name not in keys and one.markers:
            said.append(f"{table}.{one.name}: {', '.join(one.markers)} would have to be empty fields")
        if one.name not in keys and one.spellings:
            said.append(f"{table}.{one.name}: days would have to be written as 2019-12-31")
    return said


def _of_dialects(places: Mapping[str, Location]) -> list[str]:
    if len({place.dialect for place in places.values()}) == 1:
        return []
    return [
        f"{', '.join(places)} are written differently (separators, decimals, encoding), and [csv] holds for all of them"
    ]
