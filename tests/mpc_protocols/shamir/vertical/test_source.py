"""Marginals of several owners' columns against the functionality in the clear: parties, owners, populations, ranges of rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mpc_protocols.functionality import Clique
from mpc_protocols.partition import OwnRows, Partition, ideal_counts
from tests.mpc_protocols.replicated.vertical.owners import Population, partition, random_owners
from tests.mpc_protocols.shamir.vertical.owners import held_marginals

SIZES = {"a": 2, "b": 5, "c": 3, "d": 4, "e": 7}
BATCHES: list[list[Clique]] = [
    [("c",)],
    [*combinations(SIZES, 2), ("e", "a", "b")],
    [("b", "e"), ("a", "c", "d"), ("e", "b", "d"), ("d",)],
]


def check(
    of: Partition, tables: dict[int, OwnRows], computing: int, batches: list[list[Clique]] = BATCHES
) -> None:
    cliques = [clique for batch in batches for clique in batch]
    found, _ = held_marginals(SIZES, of, tables, batches, computing)
    for clique, cells, wanted in zip(cliques, found, ideal_counts(of, tables, SIZES)(cliques), strict=True):
        np.testing.assert_array_equal(cells, wanted, err_msg=str(clique))


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize(
    ("computing", "owners"),
    [
        (3, (0, 1, 0, 1, 1)),
        (3, (2, 0, 1, 2, 0)),
        (4, (3, 1, 3, 3, 1)),
        (5, (0, 5, 0, 5, 5)),
        (5, (4, 1, 2, 4, 3)),
        (9, (8, 9, 10, 8, 9)),
    ],
)
def test_marginals_are_those_of_the_population(
    population: Population, computing: int, owners: tuple[int, ...]
) -> None:
    """Owners that compute, that evaluate nothing, that contribute; two to four of them."""
    of = partition(SIZES, dict(zip(SIZES, owners, strict=True)), population, 90)
    held = (0.8, 0.7, 0.9, 0.6)[: len(of.owners)]
    check(of, random_owners(SIZES, of, held, np.random.default_rng()), computing)
