"""Linked tables as codes, all rows of them: for whoever judges or tries tables that they hold, never for a
run (OFFLINE ONLY)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from parties.data.files.opening import open_table
from parties.data.linked.keys import keys_of, people_keys
from parties.data.linked.order import ranks
from parties.data.linked.places import LinkedPlaces, orphan
from parties.data.linked.unfold import MAX_ROWS, columns_of, within
from parties.data.records import read
from synth.linked.folding import Children

if TYPE_CHECKING:
    import pyarrow as pa

    from parties.data.location import Location
    from parties.data.source import Source
    from synth.domain import Domain
    from synth.linked.conditional import Codes
    from synth.linked.tables import ChildTable


@dataclass(frozen=True)
class CodedTables:
    """people: codes, (people, the parent's columns). children: by name; a person's stand together, in their
    order. beneath: of children that have rows of their own, by name, the same with all of these children as
    people."""

    people: Codes = field(repr=False)
    children: Mapping[str, Children] = field(repr=False)
    beneath: Mapping[str, CodedTables] = field(default_factory=dict, repr=False)

    def counts(self, name: str) -> Codes:
        """How many children of one table each person has."""
        return np.bincount(self.children[name].person, minlength=len(self.people))

    def of_people(self, some: Codes) -> CodedTables:
        """Of some people only, by their places, with what is theirs."""
        place = np.full(len(self.people), -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        children = {}
        for name, own in self.children.items():
            person = place[own.person]
            by_person = np.flatnonzero(person >= 0)
            by_person = by_person[np.argsort(person[by_person], kind="stable")]
            children[name] = Children(own.table, person[by_person], own.codes[by_person])
        return CodedTables(self.people[some], children)


def coded(location: Location, rng: np.random.Generator, *, in_order: bool = False) -> CodedTables:
    """Read tables as a run would take them: of people with more than max_rows children, so many at random.

    in_order: children stand in their order already, as in a result's files, which may lack the column. Raises
    `DataRefused`.
    """
    assert location.linked is not None
    linked, places = location.linked.linked, location.linked
    with open_table(location) as source:
        keys = people_keys(source, columns_of(source, linked.key, ()), linked.key)
        people = _codes(source, linked.people)
    children = {
        child.name: _children(location, places, child, keys, rng, in_order=in_order)
        for child in linked.children
    }
    beneath = {}
    for child in linked.children:
        if child.beneath is not None:
            own = LinkedPlaces(child.beneath, {one.name: places.children[one.name] for one in child.children})
            beneath[child.name] = coded(
                replace(places.children[child.name], linked=own), rng, in_order=in_order
            )
    return CodedTables(people, children, beneath)


def _children(
    location: Location,
    places: LinkedPlaces,
    child: ChildTable,
    people: pa.Array,
    rng: np.random.Generator,
    *,
    in_order: bool,
) -> Children:
    by = () if in_order or child.order is None else (child.order,)
    with open_table(places.children[child.name]) as source:
        table = columns_of(source, places.linked.key, by)
        person = np.asarray(
            pc.index_in(keys_of(source, table, places.linked.key), people).fill_null(-1), dtype=np.int64
        )
        if (person < 0).any():
            row = int(np.argmax(person < 0))
            raise orphan(location, places, child.name, source.places({row})[row])
        order = ranks(source, child, table[by[0]]) if by else np.zeros(len(person), dtype=np.int64)
        codes = _codes(source, child.domain)
    drawn = rng.random(len(person))
    stays = within(person, np.lexsort((drawn, person))) < child.max_rows
    last = np.arange(len(person)) if in_order and child.order is not None else drawn
    rows = np.lexsort((last, order, person))
    rows = rows[stays[rows]]
    return Children(child, person[rows], codes[rows])


def _codes(source: Source, domain: Domain) -> Codes:
    records = read(source, domain, None, max_rows=MAX_ROWS, allow_empty=True)
    return np.column_stack([records.codes[name] for name in domain.names]).astype(np.int64)
