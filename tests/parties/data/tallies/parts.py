"""A table of people cut into parts, and what a study asks of each: for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parties.data.counting.local_marginals import LocalTable, count
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.tallies.counting import Counting, count_partition, place_of
from parties.data.tallies.partition import PartitionCounts
from parties.data.tallies.total import Total
from synth.domain import Codes, Domain, Numeric
from tests.parties.data.tables import Table, write_csv

AGE = Numeric(low=17, high=90, bins=6, integral=True, missing=True)
DOMAIN = Domain(("age", "code", "sex"), (AGE, Codes(12), Codes(2)))
CLIQUES = [("age", "code"), ("sex",), ("code", "sex")]
COUNTING = Counting(b"s" * 32, "trial", DOMAIN, CLIQUES, 10_000)
BY_PERSON = replace(COUNTING, unit=("person", 2))


def people(rows: int, seed: int = 1) -> Table:
    """Ages from 10 to 99, so that some are clamped, and some missing."""
    rng = np.random.default_rng(seed)
    ages: list[object] = [None if age < 12 else age for age in rng.integers(10, 100, rows).tolist()]
    return {
        "person": [f"p{number // 2}" for number in range(rows)],
        "age": ages,
        "code": rng.integers(0, 12, rows).tolist(),
        "sex": rng.integers(0, 2, rows).tolist(),
    }


def rows_of(table: Table, rows: Sequence[int]) -> Table:
    return {name: [column[row] for row in rows] for name, column in table.items()}


def written(folder: Path, table: Table, owners: Sequence[int], parts: int) -> list[Location]:
    """owners: of each row, the part that it is in."""
    return [
        write_csv(
            folder / f"part{part}.csv", rows_of(table, [row for row, of in enumerate(owners) if of == part])
        )
        for part in range(parts)
    ]


def partition(location: Location, counting: Counting = COUNTING) -> PartitionCounts:
    assert location.path is not None
    with open_source(location) as source:
        return count_partition(source, counting, place_of(location.path))


def added(parts: Sequence[PartitionCounts], counting: Counting = COUNTING) -> LocalTable:
    """Through the bytes that a file would have."""
    total = Total(counting, "the table")
    for number, part in enumerate(parts):
        label = f"part{number}.tally"
        total.add(total.parse(part.to_bytes(), label), label)
    return total.table(allow_empty=False)


def whole(location: Location, counting: Counting = COUNTING) -> LocalTable:
    with open_source(location) as source:
        return count(source, DOMAIN, CLIQUES, max_rows=counting.max_rows, unit=counting.unit)


def told(local: LocalTable) -> tuple[object, ...]:
    """All that a custodian's own marginals say, comparable."""
    marginals: list[NDArray[np.int64]] = local.counts([*CLIQUES, ("age",), ("code", "age")])
    return (
        local.rows,
        dict(local.clamped),
        dict(local.absent),
        local.ignored,
        [(one.dtype, one.tolist()) for one in marginals],
    )
