"""What workers run on linked tables: rows are sorted by persons, so that each bucket of persons has all that
is theirs in every table, and each bucket is unfolded and counted (`docs/design/linked.md` 2).

    scatter        some files of one table  ->  a piece for each bucket
    route          rows of a person's rows (a visit's prescriptions), which name the visit: sorted by visits first, and from
                   there by the visit's person
    count_bucket   the pieces of all tables  ->  counts

A bucket is a range of the hash of the person's key (`unit_hash`), so buckets state ranges that do not
overlap, as parts that a custodian has cut by itself. Nothing is raised: a refusal is a sentence without a
value, handed on in place of rows. Rows are in the workers' memory, which spill as their engine does, and go
from worker to worker; to who asked go counts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpc_protocols.errors import CosynthError, DataRefused
from parties.data.counting.coding import Distinct
from parties.data.counting.scan import inspect
from parties.data.linked.held import Held, unfold_held
from parties.data.linked.keys import keys_of, people_keys
from parties.data.linked.opening import open_source
from parties.data.linked.order import form_of_texts, ranks
from parties.data.linked.places import orphan_of
from parties.data.linked.unfold import Unfolding, columns_of, fits
from parties.data.tallies.counting import Counting, count_partition
from parties.data.tallies.engines.task import COUNTED, REFUSED, check_software
from parties.data.tallies.unit_range import unit_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from parties.data.location import Location
    from parties.data.source import Source
    from synth.domain import Domain
    from synth.linked.tables import ChildTable, LinkedTables

OWNER, OWN, BUCKET = "\0owner", "\0own", "\0bucket"
"""Columns that tasks add, by names that no table has: the key of a row's owner and that of the row itself, as
texts, and the bucket of its person."""


@dataclass(frozen=True)
class Cut:
    """What all tasks know. labels: what sentences call each table. buckets: how many. draws: the key of the
    draws. asked_by: `software()` of who asks."""

    counting: Counting
    linked: LinkedTables
    labels: Mapping[str, str]
    buckets: int
    draws: bytes = field(repr=False)
    asked_by: str

    def of_persons(self, keys: pa.Array) -> NDArray[np.int64]:
        """The bucket of each person, by the hash that parts state."""
        counting = self.counting
        distinct = Distinct(keys)
        found = [
            int.from_bytes(unit_hash(counting.name, self.linked.key, text)[:8], "big") * self.buckets >> 64
            for text in distinct.values.to_pylist()
        ]
        return np.asarray(distinct.lookup(found, 0), dtype=np.int64)

    def of_rows(self, keys: pa.Array) -> NDArray[np.int64]:
        """The bucket of each row's own key, by which `route` sorts."""
        distinct = Distinct(keys)
        found = [
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") * self.buckets >> 64
            for text in distinct.values.to_pylist()
        ]
        return np.asarray(distinct.lookup(found, 0), dtype=np.int64)


def table_of(linked: LinkedTables, name: str) -> tuple[str, Domain, ChildTable | None]:
    """Of a table: the column that names the row's owner, its columns, and what it is if not the people's."""
    if name == linked.parent:
        return linked.key, linked.people, None
    child = next(one for one in linked.tables if one.name == name)
    of = next((one for one in linked.children if child in one.children), None)
    return linked.key if of is None else str(of.key), child.domain, child


def columns_used(linked: LinkedTables, name: str) -> tuple[str, ...]:
    """The columns that a table's file must have, the key of the row's owner first."""
    key, domain, child = table_of(linked, name)
    besides = () if child is None else (one for one in (child.order, child.key) if one is not None)
    return tuple(dict.fromkeys((key, *domain.names, *besides)))


def check_forms(label: str, forms: Collection[str], part: str) -> None:
    """Raise `DataRefused` if the order of a table's rows is written in several ways. part: what differs."""
    if len(forms) > 1:
        raise DataRefused(
            f"{label}: the order of a person's rows is numbers in one {part} and days in another; write all of them alike."
        )


def log_unfolded(log: logging.Logger, told: Iterable[Unfolding]) -> None:
    """Tell the custodian alone what all buckets together came to."""
    sums: dict[str, tuple[int, int, int]] = {}
    for one in told:
        children, truncated, left_out = sums.get(one.name, (0, 0, 0))
        sums[one.name] = children + one.children, truncated + one.truncated, left_out + one.left_out
    for name, own in sums.items():
        log.info("own data: %s: children %d; people with too many %d, children left out %d", name, *own)


@dataclass(frozen=True)
class Pieces:
    """Rows of one table, a table for each bucket; or the sentence of a refusal, and none. owners: of a table
    whose rows have rows of their own, for each of `route`'s buckets their keys and their persons' buckets.
    forms: how an order of texts is written. schema: of the table's own columns, if there was a row."""

    refused: str = ""
    rows: tuple[pa.Table, ...] = field(default=(), repr=False)
    owners: tuple[pa.Table, ...] = field(default=(), repr=False)
    forms: frozenset[str] = frozenset()
    schema: pa.Schema | None = None

    def __sizeof__(self) -> int:
        """Bytes, the rows' among them: by what workers say of this, their engine keeps to their memory, and
        rows where they are."""
        return super().__sizeof__() + sum(int(one.nbytes) for one in (*self.rows, *self.owners))


@dataclass(frozen=True)
class Verdict:
    """What of `Pieces` goes to who asked."""

    refused: str
    forms: frozenset[str]
    schema: pa.Schema | None


def scatter(files: Sequence[Location], name: str, cut: Cut) -> Pieces:
    """Read and check files of the table `name`. Rows of what belongs to a person's rows are cut for `route`."""
    return _or_refused(cut.labels[name], cut.asked_by, lambda: _scattered(files, name, cut))


def route(owners: Sequence[pa.Table | str], rows: Sequence[pa.Table | str], name: str, cut: Cut) -> Pieces:
    """Of one of `route`'s buckets: the rows of the table `name`, for their persons' buckets. A refusal stands
    in place of a table."""
    return _or_refused(cut.labels[name], cut.asked_by, lambda: _routed(owners, rows, name, cut))


def count_bucket(
    number: int,
    tables: Mapping[str, Sequence[pa.Table | str]],
    schemas: Mapping[str, pa.Schema | None],
    state: bytes,
    cut: Cut,
) -> tuple[bytes, list[Unfolding]]:
    """`COUNTED` and the counts of this bucket's persons, or `REFUSED` and a sentence; and what the owner may
    know. schemas: as `check_alike` found them. state: which files there are, in which state. A refusal stands
    in place of a table."""
    label = cut.labels[cut.linked.parent]
    try:
        check_software(label, cut.asked_by)
        held = {name: _joined(pieces, cut.labels[name], schemas[name]) for name, pieces in tables.items()}
        source, told = unfold_held(held, cut.labels, cut.linked, cut.draws)
        place = hashlib.sha256(state + number.to_bytes(8, "big")).digest()
        return COUNTED + count_partition(source, cut.counting, (place, place)).to_bytes(), told
    except CosynthError as error:
        return REFUSED + error.sentence.encode(), []
    except Exception as error:  # its text may quote a record
        return REFUSED + _failed(label, error).encode(), []


def piece(pieces: Pieces, number: int, kind: str = "rows") -> pa.Table | str:
    """One bucket's, or the sentence of a refusal. kind: "rows" or "owners"."""
    found: tuple[pa.Table, ...] = getattr(pieces, kind)
    return pieces.refused or found[number]


def verdict(pieces: Pieces) -> Verdict:
    """What of some pieces goes to who asked."""
    return Verdict(pieces.refused, pieces.forms, pieces.schema)


def check_alike(label: str, verdicts: Sequence[Verdict]) -> pa.Schema | None:
    """The types of a table's columns, from all its files; None where no file has a row.

    A draw is made of texts, and a moment has another text in each unit of time: were these of a bucket's own
    rows, then a person's draw would rest on who else is in the bucket. Raises `DataRefused` for a refusal, and
    for files that are not written alike.
    """
    for one in verdicts:
        if one.refused:
            raise DataRefused(one.refused)
    check_forms(label, frozenset[str]().union(*(one.forms for one in verdicts)), "file")
    schemas = [one.schema for one in verdicts if one.schema is not None]
    with suppress(pa.ArrowException):
        return pa.unify_schemas(schemas, promote_options="permissive") if schemas else None
    raise _of_several_types(label)


def _or_refused(label: str, asked_by: str, made: Callable[[], Pieces]) -> Pieces:
    try:
        check_software(label, asked_by)
        return made()
    except CosynthError as error:
        return Pieces(error.sentence)
    except Exception as error:  # its text may quote a record
        return Pieces(_failed(label, error))


def _failed(label: str, error: Exception) -> str:
    return f"{label} could not be counted by a worker ({type(error).__name__})."


def _scattered(files: Sequence[Location], name: str, cut: Cut) -> Pieces:
    read, forms = [], set[str]()
    for file in files:
        with open_source(file) as source:
            table, form = _read(source, name, cut)
            source.check_unchanged()
        read.append(table)
        forms |= {form} - {""}
    table = _joined(read, cut.labels[name])
    owners, alike = _column(table, OWNER), frozenset(forms)
    schema = table.select(list(columns_used(cut.linked, name))).schema if table.num_rows else None
    if table_of(cut.linked, name)[0] != cut.linked.key:
        return Pieces("", _cut(table, cut.of_rows(owners), cut.buckets), (), alike, schema)
    buckets, keys = cut.of_persons(owners), ()
    if OWN in table.column_names:
        own = pa.table({OWN: table[OWN], BUCKET: pa.array(buckets)})
        keys = _cut(own, cut.of_rows(_column(own, OWN)), cut.buckets)
        table = table.drop_columns([OWN])
    return Pieces("", _cut(table.drop_columns([OWNER]), buckets, cut.buckets), keys, alike, schema)


def _routed(owners: Sequence[pa.Table | str], rows: Sequence[pa.Table | str], name: str, cut: Cut) -> Pieces:
    owner, column = cut.linked.owner(name), table_of(cut.linked, name)[0]
    known = _joined(owners, cut.labels[owner])
    keys = people_keys(Held(cut.labels[owner], known), {column: _column(known, OWN)}, column)
    table = _joined(rows, cut.labels[name])
    places = pc.index_in(_column(table, OWNER), keys)
    if places.null_count:
        raise orphan_of(cut.labels, cut.linked, name, "")
    buckets = np.asarray(_column(known, BUCKET).take(places), dtype=np.int64)
    return Pieces("", _cut(table.drop_columns([OWNER]), buckets, cut.buckets))


def _read(source: Source, name: str, cut: Cut) -> tuple[pa.Table, str]:
    """All rows of a file, with `OWNER` and `OWN`; and how their order is written."""
    key, domain, child = table_of(cut.linked, name)
    used = columns_used(cut.linked, name)
    for sentence in inspect(source, domain, keys=used).problems:
        raise DataRefused(sentence)
    columns = columns_of(source, key, used[1:])
    fits(source, domain)
    added, form = {OWNER: keys_of(source, columns, key)}, ""
    if child is not None and child.key is not None:
        added[OWN] = keys_of(source, columns, child.key)
    if child is not None and child.order is not None:
        ranks(source, child, columns[child.order])
        form = form_of_texts(child, columns[child.order])
    return pa.table({**added, **columns}), form


def _joined(tables: Sequence[pa.Table | str], label: str, schema: pa.Schema | None = None) -> pa.Table:
    """schema: what the table has to have; None: whatever fits all of them. Raises `DataRefused`: the sentence
    of a refusal, or tables whose columns have types that do not fit."""
    held = []
    for one in tables:
        if isinstance(one, str):
            raise DataRefused(one)
        held.append(one)
    # a file without rows may say nothing of types
    held = [one for one in held if one.num_rows] or held[:1]
    with suppress(pa.ArrowException):  # its text may quote a value
        table = pa.concat_tables(held, promote_options="permissive")
        if schema is None:
            return table
        return table.cast(schema) if table.num_rows else schema.empty_table()
    raise _of_several_types(label)


def _of_several_types(label: str) -> DataRefused:
    return DataRefused(
        f"{label} is files whose columns have different types, which cannot be one table; write all of them alike."
    )


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def _cut(table: pa.Table, buckets: NDArray[np.int64], number: int) -> tuple[pa.Table, ...]:
    """A table's rows, a table for each bucket. Each has bytes of its own: a slice of the whole would travel
    with the whole."""
    rows = np.argsort(buckets, kind="stable")
    ends = np.cumsum(np.bincount(buckets, minlength=number))[:-1]
    return tuple(table.take(pa.array(one)) for one in np.split(rows, ends))
