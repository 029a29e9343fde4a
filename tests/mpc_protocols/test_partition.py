"""The functionality in the clear, against a count record by record; what partitions and owners' rows are
refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts

SIZES = {"a": 3, "b": 2, "c": 4}
OWNERS = {
    "owners": (0, 4),
    "columns": {"a": 0, "b": 4, "c": 4},
    "missing": {"a": 2, "b": 1, "c": 3},
    "rows": 60,
}


def rows_of(count: int, of: int, columns: dict[str, int], rng: np.random.Generator) -> OwnRows:
    return OwnRows(
        rng.permutation(of)[:count].astype(np.int64),
        {name: rng.integers(0, size, count).astype(np.uint8) for name, size in columns.items()},
    )


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize(("first", "second"), [(30, 40), (0, 10), (60, 60), (1, 60), (0, 0)])
def test_ideal_counts_record_by_record(population: Any, first: int, second: int) -> None:
    rng = np.random.default_rng(first)
    partition = Partition(population=population, **OWNERS)  # type: ignore[arg-type]
    tables = {0: rows_of(first, 60, {"a": 3}, rng), 4: rows_of(second, 60, {"b": 2, "c": 4}, rng)}
    records: Counter[tuple[int, ...]] = Counter()
    for row in range(60):
        values: dict[str, int] = {}
        for table in tables.values():
            for place in np.flatnonzero(table.rows == row):
                values |= {name: int(codes[place]) for name, codes in table.codes.items()}
        if len(values) == 3 or (values and population == "union"):
            records[tuple(values.get(name, partition.missing[name]) for name in ("c", "a"))] += 1
    (counted,) = ideal_counts(partition, tables, SIZES)([("c", "a")])
    assert counted.dtype == np.int64 and counted.shape == (12,)
    assert {
        (int(cell) // 3, int(cell) % 3): int(counted[cell]) for cell in np.flatnonzero(counted)
    } == records


@pytest.mark.parametrize(
    "change",
    [
        {"owners": (0,)},
        {"owners": (0, 0)},
        {"owners": tuple(range(9))},
        {"columns": {"a": 0, "b": 1}},
        {"columns": {"a": 0}},
        {"population": "both"},
        {"missing": {"a": 2}, "population": "union"},
        {"rows": -1},
        {"rows": 1 << 31},
    ],
)
def test_partitions_that_make_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(StudyInvalid):
        Partition(**{"population": "intersection", **OWNERS, **change})


def test_rows_that_do_not_fit() -> None:
    partition = Partition(population="intersection", **OWNERS)  # type: ignore[arg-type]
    codes = np.zeros(3, np.uint8)
    for rows in (np.zeros((1, 3), np.int64), np.zeros(3, np.int32), np.zeros(2, np.int64)):
        with pytest.raises(DataRefused):
            OwnRows(rows, {"a": codes})  # type: ignore[arg-type]
    with pytest.raises(DataRefused):
        OwnRows(np.arange(3), {"a": codes.astype(np.int64)})  # type: ignore[dict-item]
    for own in (
        OwnRows(np.arange(3), {"b": codes}),
        OwnRows(np.array([0, 1, 60]), {"a": codes}),
        OwnRows(np.array([0, 1, -1]), {"a": codes}),
        OwnRows(np.array([5, 1, 5]), {"a": codes}),
        OwnRows(np.arange(3), {"a": codes + np.uint8(3)}),
    ):
        with pytest.raises(DataRefused):
            own.check(partition, 0, SIZES)
        with pytest.raises(DataRefused):
            ideal_counts(
                partition, {0: own, 4: rows_of(1, 60, {"b": 2, "c": 4}, np.random.default_rng(0))}, SIZES
            )
    with pytest.raises(StudyInvalid):
        ideal_counts(partition, {}, SIZES)


def test_private_rows_are_never_printed() -> None:
    own = OwnRows(np.array([123456]), {"a": np.array([77], np.uint8)})
    partition = Partition(population="intersection", **OWNERS)  # type: ignore[arg-type]
    for shown in (repr(own), str(VerticalData(partition, own))):
        assert "123456" not in shown and "77" not in shown
