"""Linked tables in Spark DataFrames: sorted by persons in the cluster, unfolded and counted by its executors
(`docs/design/linked.md` 2).

    every frame     its used columns as one struct, and the bucket of its person: a hash of the key as text
    union, groupBy  what belongs to a bucket's persons comes to one executor, which unfolds and counts it (`applyInArrow`)
    rows of rows    (a visit's prescriptions) find their person's bucket by a join with what they belong to

Each row comes to one bucket, and what a bucket holds twice is refused there; so each person is one row,
whatever is run again or twice. The draws are a function of the key of the draws and the person's rows, as
everywhere: an executor's task that is repeated draws alike. A visit's key that two rows have is refused by
the same query, wherever they are.

No row comes to the driver, only filled cells, which the cluster adds (`spark.py`). The key of the draws is
known to the executors. Nothing is raised on one. Needs PySpark 4 or later.

Cost: every frame is counted, then read and sorted once, and once more where it has rows of its own. A bucket
is in one executor's memory, a few hundred bytes a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mpc_protocols.errors import CosynthError, DataRefused
from parties.data.linked.held import unfold_held
from parties.data.linked.order import form_of_texts
from parties.data.linked.unfold import Unfolding
from parties.data.tallies.engines.linked_task import Cut, check_forms, columns_used, log_unfolded, table_of
from parties.data.tallies.engines.spark import (
    FORM,
    OWN,
    REFUSED,
    SCHEMA,
    Sums,
    asked,
    check_columns,
    chosen,
    counted_batch,
    handed_on,
    part_of,
)
from parties.data.tallies.engines.task import check_software, software

if TYPE_CHECKING:
    from parties.data.tallies.counting import Counting
    from parties.data.tallies.partition import PartitionCounts
    from synth.linked.tables import LinkedTables

BUCKET_ROWS = 500_000
"""Of all tables together: an executor has all rows of a bucket in memory."""
KEY_TYPES = ("string", "tinyint", "smallint", "int", "bigint")
"""Whose text is the same in Spark as everywhere."""
_ROWS, _TRUNCATED, _LEFT_OUT = "rows", "truncated", "left out"
_REPEATED = -8
"""A kind of entry, beside those of `SCHEMA`."""

log = logging.getLogger("cosynth.custodian.spark")  # below the logger whose lines are private


def unfold_frames(
    frames: Mapping[str, Any],
    counting: Counting,
    linked: LinkedTables,
    key: bytes,
    name: str,
    *,
    bucket_rows: int = BUCKET_ROWS,
) -> PartitionCounts:
    """The counts of the unfolded table. frames: of all tables, by name. key: of the draws. name: what all of
    them are called; two of one name are not added.

    Raises `DataRefused` as a run does; sentences name the column, not the row.
    """
    labels, names = {table: f"{name}, {table}" for table in linked.names}, linked.names
    for table in names:
        _check(frames[table], linked, table, labels[table])
    rows = {table: int(asked(frames[table].count, labels[table])) for table in names}
    cut = Cut(counting, linked, labels, 1 + sum(rows.values()) // bucket_rows, key, software())
    log.info("own data: %d rows, persons in %d buckets", sum(rows.values()), cut.buckets)
    sums = Sums.of_batches(asked(lambda: _query(frames, cut), name), name)
    facts = {(note, names[number]): count for number, note, count in sums.of(OWN)}
    if any(facts.get((_ROWS, table), 0) != many for table, many in rows.items()):
        raise DataRefused(
            f"{name}: a DataFrame had other rows when it was read again; write it to files and count these, or cache it."
        )
    for number, _, _ in sorted(sums.of(_REPEATED)):
        owner = names[number]
        raise DataRefused(
            f'{labels[owner]}, column "{_keys(linked, owner)[1]}", a row: this key is there already, and it names one row of '
            "this table."
        )
    for number, child in enumerate(linked.tables):
        check_forms(labels[child.name], {form for one, form, _ in sums.of(FORM) if one == number}, "row")
    told = [
        Unfolding(
            child.name, rows[child.name], 0,
            facts.get((_TRUNCATED, child.name), 0), facts.get((_LEFT_OUT, child.name), 0),
        )
        for child in linked.tables
    ]  # fmt: skip
    log_unfolded(log, told)
    ignored = (
        column
        for table in names
        for column in frames[table].columns
        if column not in columns_used(linked, table)
    )
    return part_of(sums, counting, name, list(dict.fromkeys(ignored)))


def _check(frame: Any, linked: LinkedTables, name: str, label: str) -> None:
    """Raise `DataRefused` for a column that is not there, once, and for a key of another type."""
    columns = columns_used(linked, name)
    check_columns(frame, columns, label)
    kinds = dict(zip(columns, (kind for _, kind in chosen(frame, columns).dtypes), strict=True))
    for column in _keys(linked, name):
        if kinds[column] not in KEY_TYPES:
            raise DataRefused(
                f'{label}, column "{column}": a key of type {kinds[column]} may be written in several ways; cast it to string or '
                "to bigint."
            )


def _keys(linked: LinkedTables, name: str) -> tuple[str, ...]:
    """The columns that are keys: of whose a row is, and of the row itself where rows of its own name it."""
    key, _, child = table_of(linked, name)
    return (key,) if child is None or child.key is None else (key, child.key)


def _query(frames: Mapping[str, Any], cut: Cut) -> Any:
    """A DataFrame of `SCHEMA`. Nothing is read yet."""
    linked, rows, repeated = cut.linked, dict[str, Any](), []
    for name in linked.names:
        own = _with_keys(frames[name], linked, name)
        if (owner := linked.owner(name)) == linked.parent or name == linked.parent:
            rows[name] = own.selectExpr("*", f"{_bucket_of(cut)} as bucket")
            continue
        owners = rows[owner].groupBy("own").agg({"bucket": "max", "own": "count"})
        owners = owners.selectExpr("own as owner", "`max(bucket)` as bucket", "`count(own)` as many")
        number = linked.names.index(owner)
        repeated.append(
            owners.where("many > 1").selectExpr(
                f"{_REPEATED} as part", f"{number}L as cell", "1L as count", "'' as note"
            )
        )
        # by sorting both: a broadcast would pass the keys through the driver
        found = own.join(owners.select("owner", "bucket").hint("merge"), "owner", "left")
        rows[name] = found.selectExpr("held", f"coalesce(bucket, {_bucket_of(cut)}) as bucket")
    first, *others = (
        rows[name].selectExpr("bucket", f"held as t{number}") for number, name in enumerate(linked.names)
    )
    for one in others:
        first = first.unionByName(one, allowMissingColumns=True)
    query = first.groupBy("bucket").applyInArrow(_task(cut), SCHEMA)
    for one in repeated:
        query = query.unionByName(one)
    return query


def _with_keys(frame: Any, linked: LinkedTables, name: str) -> Any:
    """A frame's rows as structs `held`, and as texts the keys `owner` and, if it has one, `own`."""
    columns = columns_used(linked, name)
    named = (
        f"nullif(cast(c{columns.index(key)} as string), '') as {called}"
        for key, called in zip(_keys(linked, name), ("owner", "own"), strict=False)
    )
    held = ", ".join(f"c{number}" for number in range(len(columns)))
    return chosen(frame, columns).selectExpr(f"struct({held}) as held", *named)


def _bucket_of(cut: Cut) -> str:
    """Of the key `owner`. What has no person comes to some bucket, and is refused there."""
    return f"pmod(xxhash64(owner), {cut.buckets}L)"


def _task(cut: Cut) -> Callable[[pa.Table], pa.Table]:
    """What an executor runs on a bucket."""

    def count(rows: pa.Table) -> pa.Table:
        try:
            found = _counted(rows, cut)
        except CosynthError as error:
            found = handed_on([(REFUSED, 0, 1, error.sentence)])
        except Exception as error:  # its text may quote a record
            label = cut.labels[cut.linked.parent]
            found = handed_on([(REFUSED, 0, 1, f"{label} could not be counted ({type(error).__name__}).")])
        return pa.Table.from_batches([found])

    return count


def _counted(rows: pa.Table, cut: Cut) -> pa.RecordBatch:
    linked, names = cut.linked, cut.linked.names
    check_software(cut.labels[linked.parent], cut.asked_by)
    tables = {}
    for number, name in enumerate(names):
        held = rows[f"t{number}"].combine_chunks().drop_null()
        tables[name] = pa.Table.from_arrays(held.flatten(), list(columns_used(linked, name)))
    source, told = unfold_held(tables, cut.labels, linked, cut.draws)
    entries = [(OWN, number, tables[name].num_rows, _ROWS) for number, name in enumerate(names)]
    for one in told:
        number = names.index(one.name)
        entries += [(OWN, number, one.truncated, _TRUNCATED), (OWN, number, one.left_out, _LEFT_OUT)]
    for number, child in enumerate(linked.tables):
        if child.order is not None:
            form = form_of_texts(child, tables[child.name][child.order].combine_chunks())
            entries += [(FORM, number, 1, form)] if form else []
    return counted_batch(source, cut.counting, entries)
