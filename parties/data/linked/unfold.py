"""A person's parent row and children as one row: a private copy that the ordinary readers read
(`docs/design/linked.md` 1, 2).

Both tables are read as they lie, checked by the study's columns with their own line numbers (also children
that are not drawn), and the copy is written as Parquet, values as they stand, into a folder of this process
that nobody else may enter. What a custodian alone may know of it (`Unfolding`) goes to its private log or to
`check`.

Memory: the key, the order and the columns of all rows; a few hundred bytes a child.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from mpc_protocols.errors import DataRefused
from parties.data.counting.scan import Scan, inspect
from parties.data.linked.keys import as_texts, keys_of, people_keys, place_of_row
from parties.data.linked.order import ranks
from synth.linked.tables import ChildTable, LinkedTables

if TYPE_CHECKING:
    from parties.data.source import Source

COPY = "unfolded.parquet"
MAX_ROWS = 1 << 40
Index = NDArray[np.int64]

log = logging.getLogger("cosynth.custodian.linked")  # below the logger whose lines are private


@dataclass(frozen=True)
class Unfolding:
    """What the custodian alone is told of one table of children. orphans: children without a parent;
    truncated: people (rows of another table of children, if they belong to these) with more than max_rows
    children, and left_out: how many of theirs."""

    name: str
    children: int = field(repr=False)
    orphans: int = field(repr=False)
    truncated: int = field(repr=False)
    left_out: int = field(repr=False)
    orphan_place: str = field(default="", repr=False)


def unfold(
    people: Source, children: dict[str, Source], linked: LinkedTables, key: bytes, folder: Path
) -> tuple[Path, list[Unfolding]]:
    """Write the copy; hand back where it is, and what its owner may know. Raises as `unfolded`."""
    table, told = unfolded(people, children, linked, key)
    path = folder / COPY
    parquet.write_table(table, path)
    path.chmod(0o600)
    return path, told


def unfolded(
    people: Source, children: dict[str, Source], linked: LinkedTables, key: bytes
) -> tuple[pa.Table, list[Unfolding]]:
    """The key's column and those of a person's row; and what the owner may know. key: of the draws.

    children: by name, of those that this custodian has. Raises `DataRefused` for tables that do not fit each
    other or the study, but not for children without a parent: those are in no row.
    """
    names = tuple(name for name in linked.people.names if name in people.columns)
    table = columns_of(people, linked.key, names)
    fits(people, linked.people.subset(names) if names else None)
    keys = people_keys(people, table, linked.key)
    columns = {linked.key: table[linked.key], **{name: table[name] for name in names}}
    own_columns, told = _beneath(children, linked, keys, key)
    columns |= own_columns
    for child in linked.tables:
        for own in (one for one in told if one.name == child.name):
            log.info(
                "own data: %s: children %d; without a parent %d; people with more than %d: %d, children left out %d",
                child.name, own.children, own.orphans, child.max_rows, own.truncated, own.left_out,
            )  # fmt: skip
    return pa.table(columns), told


def _beneath(
    sources: dict[str, Source], linked: LinkedTables, keys: pa.Array, key: bytes
) -> tuple[dict[str, pa.Array], list[Unfolding]]:
    """The columns that children add to the rows of these keys, and what their owner may know."""
    columns, told = dict[str, pa.Array](), list[Unfolding]()
    for child in linked.children:
        if child.name in sources:
            own_told, own = _children(sources, child, linked, keys, key)
            columns |= own
            told += own_told
    return columns, told


def _children(
    sources: dict[str, Source], child: ChildTable, linked: LinkedTables, people: pa.Array, key: bytes
) -> tuple[list[Unfolding], dict[str, pa.Array]]:
    source = sources[child.name]
    besides = [child.order] if child.order and child.ordered_by is None else []
    wanted = [*child.domain.names, *besides, *([] if child.key is None else [child.key])]
    for sentence in inspect(source, child.domain, keys=[linked.key, *wanted]).problems:
        raise DataRefused(sentence)
    table = columns_of(source, linked.key, tuple(wanted))
    fits(source, child.domain)
    owners = keys_of(source, table, linked.key)
    person = np.asarray(pc.index_in(owners, people).fill_null(-1), dtype=np.int64)
    there = np.flatnonzero(person >= 0)
    orphans = len(person) - len(there)
    place = place_of_row(source, int(np.argmax(person < 0))) if orphans else ""
    order = np.zeros(len(person), dtype=np.int64)
    if child.order is not None:
        order = ranks(source, child, table[child.order])
    keep, draw = _hashes(key, child, owners, [as_texts(source, name, table[name]) for name in wanted])
    person, order, keep, draw = person[there], order[there], keep[there], draw[there]
    count, first, second, left_out, truncated = draws(person, order, keep, draw, len(people), child)
    columns: dict[str, pa.Array] = {child.count: pa.array(count)}
    for called, chosen in ((child.first, first), (child.second, second)):
        rows = pa.array(np.where(chosen < 0, 0, there[chosen] if len(there) else 0), mask=chosen < 0)
        for name in child.domain.names:
            columns[called(name)] = table[name].take(rows)
    told = [Unfolding(child.name, len(owners), orphans, truncated, left_out, place)]
    if (beneath := child.beneath) is not None:
        of_all, theirs = _beneath(sources, beneath, people_keys(source, table, beneath.key), key)
        rows = pa.array(np.where(first < 0, 0, there[first] if len(there) else 0), mask=first < 0)
        columns |= {name: values.take(rows) for name, values in of_all.items()}
        columns |= {
            own.count: columns[own.count].fill_null(0) for own in child.children if own.count in columns
        }
        told += theirs
    return told, columns


def draws(
    person: Index,
    order: Index,
    keep: NDArray[np.uint64],
    draw: NDArray[np.uint64],
    people: int,
    child: ChildTable,
) -> tuple[Index, Index, Index, int, int]:
    """Of each person: the count, the place of A and of B among the children given (-1: there is none); and
    how many children were left out, of how many people. order, keep, draw: of each child, its place in the
    order and the two hashes."""
    rank = within(person, np.lexsort((keep, person)))
    count = np.minimum(np.bincount(person, minlength=people), child.max_rows)
    stays = rank < child.max_rows
    truncated = len(np.unique(person[~stays]))
    left = np.flatnonzero(stays)
    by_draw = left[np.lexsort((draw[left], person[left]))]
    drawn = within(person[by_draw], np.arange(len(by_draw)))
    first, second = np.full(people, -1, dtype=np.int64), np.full(people, -1, dtype=np.int64)
    first[person[by_draw[drawn == 0]]] = by_draw[drawn == 0]
    if child.order is None:
        second[person[by_draw[drawn == 1]]] = by_draw[drawn == 1]
    else:
        # ties by the hash that says nothing of the draw: by `draw`, A would be the first of its ties, always
        in_order = left[np.lexsort((keep[left], order[left], person[left]))]
        before = np.full(len(person), -1, dtype=np.int64)
        same = person[in_order[1:]] == person[in_order[:-1]]
        before[in_order[1:][same]] = in_order[:-1][same]
        has = first >= 0
        second[has] = before[first[has]]
    return count, first, second, int((~stays).sum()), truncated


def within(person: Index, sorted_by: Index) -> Index:
    """The number of each child among its person's, in the order that `sorted_by` lists all children in,
    people together."""
    found = np.empty(len(person), dtype=np.int64)
    own = person[sorted_by]
    starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]]) if len(own) else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.r_[starts, len(own)])
    found[sorted_by] = np.arange(len(own)) - np.repeat(starts, sizes)
    return found


def _hashes(
    key: bytes, child: ChildTable, owners: pa.Array, content: Sequence[pa.Array]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two independent 64-bit ranks of each child, by its person, its content (both as text) and its number
    among equal children of the person."""
    texts = [column.to_pylist() for column in (owners, *content)]
    keyed = hashlib.blake2b(child.name.encode(), key=key, digest_size=16)
    seen: dict[tuple[str | None, ...], int] = {}
    found = bytearray()
    for row in zip(*texts, strict=True):
        number = seen[row] = seen.get(row, -1) + 1
        one = keyed.copy()
        one.update(repr((number, *row)).encode())
        found += one.digest()
    pairs = np.frombuffer(bytes(found), dtype=np.uint64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def columns_of(source: Source, key: str, names: tuple[str, ...]) -> dict[str, pa.Array]:
    """The columns of all rows. Raises `DataRefused` for one that is not there."""
    for name in (key, *names):
        if name not in source.columns:
            raise DataRefused(source.lacking(name))
        if source.columns.count(name) > 1:
            raise DataRefused(
                f'{source.label} has more than one column "{name}"; rename the others, or leave them out.'
            )
    batches = list(source.batches((key, *names)))
    if not batches:
        return {name: pa.array([], pa.string()) for name in (key, *names)}
    table = pa.Table.from_batches(batches)
    return {name: table[name].combine_chunks() for name in (key, *names)}


def fits(source: Source, domain: object) -> None:
    """Raise `DataRefused` for the first row that does not fit the study's columns: by the lines of this
    table, not of the copy."""
    if domain is None:
        return
    scan = Scan(source, domain, max_rows=MAX_ROWS, allow_empty=True)  # type: ignore[arg-type]
    for _ in scan.blocks(1 << 16, stop=True):
        pass
    for sentence in scan.problems():
        raise DataRefused(sentence)
