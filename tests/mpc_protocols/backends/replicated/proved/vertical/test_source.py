"""Proved shares of vertical marginals against the functionality in the clear: owners in every role, both
populations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proved.vertical import columns, planner
from mpc_protocols.backends.replicated.vertical import plan as plans
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import OwnRows, Partition, ideal_counts
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    partition,
    random_owners,
    shared_marginals,
)

SIZES = {"a": 3, "b": 4, "c": 5, "d": 2, "e": 1}
PAIRS = list(combinations(SIZES, 2))
SPLITS = {  # the owner of each column; computing parties are 0, 1, 2
    "two": (0, 0, 1, 1, 1),
    "three, one of which contributes": (0, 3, 2, 0, 3),
    "two that only contribute": (3, 4, 3, 4, 3),
}


def check(of: Partition, tables: dict[int, OwnRows], batches: Sequence[Sequence[Clique]]) -> None:
    marginals, rows, _ = shared_marginals(SIZES, of, tables, batches, proved=True)
    cliques = [clique for batch in batches for clique in batch]
    expected = ideal_counts(of, tables, SIZES)(cliques)
    for clique, counts, ideal in zip(cliques, marginals, expected, strict=True):
        np.testing.assert_array_equal(counts, ideal, str(clique))
    assert rows == [int(expected[0].sum())] * len(batches)


@pytest.mark.parametrize(
    ("split", "population"),
    [
        ("three, one of which contributes", "intersection"),
        ("two", "union"),
        ("two that only contribute", "union"),
    ],
)
def test_pairs_then_other_tables(monkeypatch: pytest.MonkeyPatch, split: str, population: Population) -> None:
    """Several row blocks, ranges and requests."""
    monkeypatch.setattr(columns, "MAX_KEPT", 0 if split == "two" else 2000)  # nothing, or some of the columns
    monkeypatch.setattr(planner, "BLOCK_BYTES", 6000)
    monkeypatch.setattr(planner, "MIN_BLOCK_ROWS", 20)
    monkeypatch.setattr(planner, "NARROW_ROWS", 40)
    monkeypatch.setattr(plans, "NARROW_ROWS", 40)
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 60)
    tables = random_owners(SIZES, of, [0.8] * len(of.owners), np.random.default_rng(1))
    check(of, tables, [PAIRS, [("c", "a", "b"), ("d",), ("d", "c", "a")]])
