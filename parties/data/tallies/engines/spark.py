"""A Spark DataFrame, counted by its executors (mapInArrow) and added in the cluster (groupBy and sum).

The executors code and count as one process does, and hand on filled cells only; so the tally is that of one
part, equal bit for bit. A person's rows are looked at in the whole DataFrame, by one groupBy; the part then
claims all identifiers for itself, and no other part fits beside it. Cosynth must be installed on the
executors, in the same version.

Nothing is raised on an executor, since Spark logs what is raised: a refusal comes back as a row without a
value. What Spark itself raises, as of a file that it cannot parse, is not handed on: it may quote a record.
Columns are taken by their places, so that names that Spark takes for one (ID and id) are none to us. Needs
PySpark 4 or later; nothing here imports it but through the DataFrame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpc_protocols.errors import DataRefused
from parties.data.counting.scan import Scan
from parties.data.source import BLOCK_ROWS, Source
from parties.data.tallies.blocks import Blocks
from parties.data.tallies.counting import Counting, layout_of
from parties.data.tallies.partition import HASH, MAX_COUNT, PartitionCounts, UnitRange, cell_counts

SCHEMA = "part int, cell long, count long, note string"
"""Rows that executors hand on: a table's number and a cell; or one of the following, and what it is about."""
_ROWS, _CLAMPED, _ABSENT, _BROKEN, REFUSED, FORM, OWN = -1, -2, -3, -4, -5, -6, -7
_ALL = UnitRange(bytes(HASH), b"\xff" * HASH)


def count_frame(frame: Any, counting: Counting, name: str) -> PartitionCounts:
    """The counts of a DataFrame whose columns are the study's. name: what the table is called; two of one
    name are not added.

    Raises `DataRefused` as `count` does; sentences name the column, not the row.
    """
    columns = list(counting.domain.names)
    used = [*columns, *(() if counting.unit is None else counting.unit[:1])]
    check_columns(frame, used, name)
    if counting.unit is not None:
        _check_units(frame, *counting.unit, name)
    found = chosen(frame, columns).mapInArrow(_task(counting, name), SCHEMA)
    ignored = [column for column in frame.columns if column not in used]
    return part_of(Sums.of_batches(found, name), counting, name, ignored)


@dataclass(frozen=True)
class Sums:
    """What executors have handed on, added in the cluster: the columns of `SCHEMA`."""

    kinds: pa.Array
    cells: pa.Array
    notes: pa.Array
    counts: pa.Array

    @classmethod
    def of_batches(cls, found: Any, name: str) -> Sums:
        """found: a DataFrame of `SCHEMA`. Raises `DataRefused` for a refusal, and for what Spark cannot do."""
        sums = asked(lambda: found.groupBy("part", "cell", "note").sum("count").toArrow(), name)
        added = cls(*(sums.column(number).combine_chunks() for number in range(4)))
        for _, sentence, _ in sorted(added.of(REFUSED)):
            raise DataRefused(sentence)
        return added

    def of(self, kind: int) -> list[tuple[int, str, int]]:
        """(cell, note, count) of one table, or of one kind of entry."""
        rows = pc.equal(self.kinds, kind)
        columns = (one.filter(rows).to_pylist() for one in (self.cells, self.notes, self.counts))
        return list(zip(*columns, strict=True))


def part_of(sums: Sums, counting: Counting, name: str, ignored: Sequence[str]) -> PartitionCounts:
    """The whole as one part. ignored: columns that the study does not use. Raises `DataRefused`."""
    domain, of = counting.domain, sums.of
    columns = domain.names
    counters = counting.counters()
    layout = layout_of(counters, domain)
    seen = of(_ROWS)
    if any(note != layout.hash.hex() for _, note, _ in seen):
        raise DataRefused(
            f"{name} was counted by executors with another version of Cosynth; install the same on all."
        )
    rows = sum(count for _, _, count in seen)
    if rows > min(counting.max_rows, MAX_COUNT):
        raise DataRefused(
            f"{name} has more rows than the study's max_rows = {counting.max_rows}; the parties must agree on a larger one."
        )
    tables = []
    for number, table in enumerate(counters.tables.values()):
        for cell, _, count in of(number):
            table[cell] = count
        tables.append(cell_counts(table))
    clamped, absent, broken = (
        {cell: count for cell, _, count in of(kind)} for kind in (_CLAMPED, _ABSENT, _BROKEN)
    )
    place = hashlib.sha256(b"spark" + name.encode()).digest()
    return PartitionCounts(
        counting.study,
        layout.hash,
        counting.rules,
        place,
        place,
        rows,
        {column: clamped.get(number, 0) for number, column in enumerate(columns)},
        {column: absent.get(number, 0) for number, column in enumerate(columns)},
        0,
        0,
        tuple(broken.get(number, 0) for number in range(len(domain.constraints))),
        tuple(ignored)[:1000],
        None if counting.unit is None else _ALL,
        tuple(tables),
    )


def asked(run: Callable[[], Any], name: str) -> Any:
    """What Spark answers. Raises `DataRefused`, with nothing of what it says."""
    try:
        return run()
    except Exception as error:
        kind = type(error).__name__
    raise DataRefused(
        f"{name} could not be read or counted by Spark ({kind}); its own logs say why. See whether each DataFrame can be read "
        "to its end, and whether the executors have Cosynth and the memory, and count again."
    )


def check_columns(frame: Any, columns: Sequence[str], label: str) -> None:
    """Raise `DataRefused` for a column that is not there, or twice."""
    for column in columns:
        if frame.columns.count(column) != 1:
            raise DataRefused(
                f'{label} must have one column "{column}", which the study declares; names must be equal, capitals included.'
            )


def chosen(frame: Any, columns: Sequence[str]) -> Any:
    """A DataFrame of these columns, called c0, c1, ..."""
    numbers = [frame.columns.index(column) for column in columns]
    called = {number: f"c{place}" for place, number in enumerate(numbers)}
    every = [called.get(number, f"x{number}") for number in range(len(frame.columns))]
    return frame.toDF(*every).select(*called.values())


def _check_units(frame: Any, person: str, bound: int, name: str) -> None:
    """Raise `DataRefused` for a person with too many rows, or a row without a person."""
    sizes = (
        chosen(frame, [person])
        .selectExpr("nullif(cast(c0 as string), '') as person")
        .groupBy("person")
        .count()
    )
    worst = sizes.selectExpr(
        f"bool_or(person is not null and count > {bound:d}) as above", "bool_or(person is null) as absent"
    )
    above, absent = asked(worst.first, name)
    if above:
        raise DataRefused(
            f"{name}, column \"{person}\": a person (one value of the unit's id) has more rows than the study's unit "
            f"max_rows = {bound}."
        )
    if absent:
        raise DataRefused(
            f'{name}, column "{person}": a row has no value of the unit\'s id, so its person is not known.'
        )


def _task(counting: Counting, name: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor runs on the batches of a partition."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            columns = counting.domain.names
            blocks = (batch.rename_columns(list(columns)) for batch in batches)
            yield counted_batch(Blocks(name, columns, blocks), counting)
        except Exception as error:  # its text may quote a record
            sentence = f"{name}, a part: it could not be counted ({type(error).__name__})."
            yield handed_on([(REFUSED, 0, 1, sentence)])

    return count


def counted_batch(
    source: Source, counting: Counting, besides: Sequence[tuple[int, int, int, str]] = ()
) -> pa.RecordBatch:
    """The counts of a part, as `SCHEMA` has them. besides: further entries."""
    domain, counters = counting.domain, counting.counters()
    scan = Scan(source, domain, max_rows=counting.max_rows, allow_empty=True)
    for codes in scan.blocks(BLOCK_ROWS, stop=True):
        counters.add(codes)
    if scan.refusals:
        return handed_on(
            [(REFUSED, 0, 1, f'{source.label}, column "{name}": {reason}.') for name, reason in scan.refusals]
        )
    entries = [(_ROWS, 0, scan.rows, layout_of(counters, domain).hash.hex())]
    coders = scan.coders.values()
    entries += besides
    entries += [(_CLAMPED, number, coder.clamped, "") for number, coder in enumerate(coders)]
    entries += [(_ABSENT, number, coder.absent, "") for number, coder in enumerate(coders)]
    entries += [(_BROKEN, number, count, "") for number, count in enumerate(scan.broken.values())]
    head = handed_on(entries)
    tables = list(counters.tables.values())
    filled = [np.flatnonzero(table) for table in tables]
    numbers = np.repeat(np.arange(len(tables), dtype=np.int32), [len(cells) for cells in filled])
    cells = np.concatenate([*filled, np.zeros(0, np.int64)])
    counts = np.concatenate(
        [*(table[one] for table, one in zip(tables, filled, strict=True)), np.zeros(0, np.int64)]
    )
    body = [pa.array(numbers), pa.array(cells), pa.array(counts), pa.array([""] * len(cells), pa.string())]
    arrays = [pa.concat_arrays([one, other]) for one, other in zip(head.columns, body, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=head.schema)


def handed_on(entries: Sequence[tuple[int, int, int, str]]) -> pa.RecordBatch:
    """Entries as `SCHEMA` has them."""
    schema = pa.schema(
        [("part", pa.int32()), ("cell", pa.int64()), ("count", pa.int64()), ("note", pa.string())]
    )
    columns = zip(*entries, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
