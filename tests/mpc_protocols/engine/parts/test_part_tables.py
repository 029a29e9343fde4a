"""Split columns over the toy of the algebra against `ideal`: any owners, those that hold parts and those that
do not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.vertical import part_tables
from mpc_protocols.vertical.partition import Partition, VerticalData, ideal_counts
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.toys.dealt_backend import ROLES, contribute
from tests.worlds import serving
from tests.worlds.questions import levels_and_distances, work
from tests.worlds.tables import SIZES, facts

OWNERS = {
    "both hold parts": {"a": 0, "b": 1, "c": 1, "d": 0},
    "one contributes": {"a": 0, "b": 2, "c": 2, "d": 0},
    "three owners": {"a": 0, "b": 1, "c": 2, "d": 1},
    "nobody holds parts": {"a": 2, "b": 3, "c": 4, "d": 2},
}


def owned(columns: Mapping[str, int], population: Population) -> tuple[Partition, list[VerticalData]]:
    of = partition(SIZES, columns, population, 300)
    rows = random_owners(SIZES, of, [0.9, 0.8, 0.7][: len(of.owners)], np.random.default_rng(3))
    parties = 1 + max(1, *of.owners)
    return of, [VerticalData(of, rows.get(number)) for number in range(parties)]


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("name", OWNERS)
def test_columns_of_any_owners(name: str, population: Population, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of rows, the last one shorter."""
    monkeypatch.setattr(part_tables, "BLOCK_BITS", 1 << 13)
    of, data = owned(OWNERS[name], population)
    counts = ideal_counts(of, {owner: data[owner].own for owner in of.owners}, SIZES)  # type: ignore[misc]
    for questions in (work, levels_and_distances):
        expected = questions(IdealOracle(facts(), counts, Recorder()))
        assert serving.serve(ROLES, contribute, 2, questions, data)[1] == expected


def test_blocks_hold_few_bits_and_cover_all_rows() -> None:
    of, _ = owned(OWNERS["three owners"], "union")
    [blocks] = part_tables.make_plan(of, SIZES, 2, [("a", "b"), ("a", "c")], True).row_ranges()
    assert blocks[0][0] == 0 and blocks[-1][1] == of.rows
    assert all(stop == start for (_, stop), (start, _) in pairwise(blocks))
