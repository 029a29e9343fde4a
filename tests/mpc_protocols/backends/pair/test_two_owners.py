"""Marginals of two owners' columns against the functionality in the clear, in both populations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mpc_protocols.backends.pair.vertical import contingency, two_owners
from mpc_protocols.backends.pair.vertical.two_owners import plan_tables, share_cliques
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import OwnRows, Partition, ideal_counts
from tests.mpc_protocols.backends.pair.pair_run import run_pair
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners

SIZES = {"a": 2, "b": 5, "c": 3, "d": 4, "e": 7}
OWNERS = {"a": 0, "b": 1, "c": 0, "d": 1, "e": 1}
CLIQUES: list[Clique] = [
    *[(c,) for c in SIZES],
    *combinations(SIZES, 2),
    ("e", "a", "b"),
    ("b", "e"),
    ("a", "c", "d"),
    ("e", "b", "d"),
]


def check(of: Partition, tables: dict[int, OwnRows], cliques: list[Clique]) -> None:
    ran = run_pair(lambda transfers: share_cliques(transfers, of, tables[transfers.link.me], SIZES, cliques))
    wanted = ideal_counts(of, tables, SIZES)(cliques)
    for clique, cells in zip(cliques, wanted, strict=True):
        found = ran.results[0][clique] + ran.results[1][clique]
        assert found.dtype == np.uint32
        np.testing.assert_array_equal(found, cells, err_msg=str(clique))


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("held", [(0.7, 0.6), (1.0, 0.3), (0.0, 0.5), (0.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_marginals_are_those_of_the_population(
    population: Population, held: tuple[float, float], rows: int
) -> None:
    of = partition(SIZES, OWNERS, population, rows)
    check(of, random_owners(SIZES, of, held, np.random.default_rng()), CLIQUES)


@pytest.mark.parametrize("population", ["intersection", "union"])
def test_narrow_sums_are_lifted(population: Population) -> None:
    of = partition(SIZES, OWNERS, population, 2000)
    assert two_owners.ring_of(2000, 9) is np.uint16
    check(of, random_owners(SIZES, of, (0.9, 0.9), np.random.default_rng()), [("a", "b"), ("c", "d")])


def test_long_tables_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contingency, "VECTOR_BYTES", 1000)
    monkeypatch.setattr(two_owners, "MAX_WIDTH", 8)
    of = partition(SIZES, OWNERS, "union", 500)
    check(of, random_owners(SIZES, of, (0.9, 0.9), np.random.default_rng()), CLIQUES)


def test_cliques_with_the_same_paths_share_their_trees() -> None:
    of = partition(SIZES, OWNERS, "intersection", 10)
    plans = plan_tables(of, SIZES, [("a", "b"), ("a", "d"), ("d", "a"), ("c", "b")])
    assert [(plan.owner, plan.paths, plan.vectors) for plan in plans] == [
        (0, ("a",), (("b",), ("d",))),
        (0, ("c",), (("b",),)),
    ]


def test_others_than_the_two_computing_parties_are_refused() -> None:
    of = partition(SIZES, OWNERS | {"e": 2}, "intersection", 10)
    with pytest.raises(StudyInvalid, match="replicated"):
        two_owners.check_owners(of)
