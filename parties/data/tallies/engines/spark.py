"""A Spark DataFrame, counted by its executors (mapInArrow) and added in the cluster (groupBy and sum).

The executors code and count as one process does, and hand on filled cells only; so the tally is that of one
part, equal bit for bit. A person's rows are looked at in the whole DataFrame, by one groupBy; the part then
claims all identifiers for itself, and no other part fits beside it. Cosynth must be installed on the
executors, in the same version.

Nothing is raised on an executor, since Spark logs what is raised: a refusal comes back as a row without a
value. Needs PySpark 4 or later; nothing here imports it but through the DataFrame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpc_protocols.errors import DataRefused
from parties.data.counting.scan import Scan
from parties.data.source import BLOCK_ROWS
from parties.data.tallies.blocks import Blocks
from parties.data.tallies.counting import Counting, layout_of
from parties.data.tallies.partition import HASH, MAX_COUNT, PartitionCounts, UnitRange, cell_counts

SCHEMA = "part int, cell long, count long, note string"
"""Rows that executors hand on: a table's number and a cell; or one of the following, and what it is about."""
_ROWS, _CLAMPED, _ABSENT, _BROKEN, _REFUSED = -1, -2, -3, -4, -5
_ALL = UnitRange(bytes(HASH), b"\xff" * HASH)


def count_frame(frame: Any, counting: Counting, name: str) -> PartitionCounts:
    """The counts of a DataFrame whose columns are the study's. name: what the table is called; two of one
    name are not added.

    Raises `DataRefused` as `count` does; sentences name the column, not the row.
    """
    domain, columns = counting.domain, list(counting.domain.names)
    used = [*columns, *(() if counting.unit is None else counting.unit[:1])]
    for column in used:
        if frame.columns.count(column) != 1:
            raise DataRefused(
                f'{name} must have one column "{column}", which the study declares; names must be equal, capitals included.'
            )
    if counting.unit is not None:
        _check_units(frame, *counting.unit, name)
    task = _task(counting)
    found = frame.select(*map(_quoted, columns)).mapInArrow(task, SCHEMA)
    sums = found.groupBy("part", "cell", "note").sum("count").toArrow().combine_chunks()
    kinds, cells, notes, counts = (sums.column(number) for number in range(4))

    def of(kind: int) -> list[tuple[int, str, int]]:
        chosen = pc.equal(kinds, kind)
        columns = (one.filter(chosen).to_pylist() for one in (cells, notes, counts))
        return list(zip(*columns, strict=True))

    for _, sentence, _ in sorted(of(_REFUSED)):
        raise DataRefused(f"{name}, {sentence}.")
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
        tuple(column for column in frame.columns if column not in used)[:1000],
        None if counting.unit is None else _ALL,
        tuple(tables),
    )


def _check_units(frame: Any, person: str, bound: int, name: str) -> None:
    """Raise `DataRefused` for a person with too many rows, or a row without a person."""
    sizes = (
        frame.selectExpr(f"nullif(cast({_quoted(person)} as string), '') as person").groupBy("person").count()
    )
    worst = sizes.selectExpr(
        f"bool_or(person is not null and count > {bound:d}) as above", "bool_or(person is null) as absent"
    ).first()
    if worst["above"]:
        raise DataRefused(
            f"{name}, column \"{person}\": a person (one value of the unit's id) has more rows than the study's unit "
            f"max_rows = {bound}."
        )
    if worst["absent"]:
        raise DataRefused(
            f'{name}, column "{person}": a row has no value of the unit\'s id, so its person is not known.'
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _task(counting: Counting) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor runs on the batches of a partition."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield _counted(batches, counting)
        except Exception as error:  # its text may quote a record
            yield _handed_on([(_REFUSED, 0, 1, f"a part: it could not be counted ({type(error).__name__})")])

    return count


def _counted(batches: Iterable[pa.RecordBatch], counting: Counting) -> pa.RecordBatch:
    domain, counters = counting.domain, counting.counters()
    scan = Scan(
        Blocks("The table", domain.names, batches), domain, max_rows=counting.max_rows, allow_empty=True
    )
    for codes in scan.blocks(BLOCK_ROWS, stop=True):
        counters.add(codes)
    if scan.refusals:
        return _handed_on([(_REFUSED, 0, 1, f'column "{name}": {reason}') for name, reason in scan.refusals])
    entries = [(_ROWS, 0, scan.rows, layout_of(counters, domain).hash.hex())]
    coders = scan.coders.values()
    entries += [(_CLAMPED, number, coder.clamped, "") for number, coder in enumerate(coders)]
    entries += [(_ABSENT, number, coder.absent, "") for number, coder in enumerate(coders)]
    entries += [(_BROKEN, number, count, "") for number, count in enumerate(scan.broken.values())]
    head = _handed_on(entries)
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


def _handed_on(entries: Sequence[tuple[int, int, int, str]]) -> pa.RecordBatch:
    schema = pa.schema(
        [("part", pa.int32()), ("cell", pa.int64()), ("count", pa.int64()), ("note", pa.string())]
    )
    columns = zip(*entries, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
