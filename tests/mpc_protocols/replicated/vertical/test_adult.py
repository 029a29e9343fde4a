"""Counts before noise on a real table: Adult split 8 & 7 columns, each owner holding a random nine tenths of the people."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from mpc_protocols.partition import OwnRows
from tests.mpc_protocols.replicated.vertical.owners import partition, shared_marginals

TABLE = Path(__file__).parents[5] / "shared" / "data" / "adult-vfl.csv"


def histogram(
    codes: Mapping[str, NDArray[np.uint8]], sizes: Mapping[str, int], clique: Clique
) -> NDArray[np.int64]:
    """Counted in the clear, by another routine than the product's."""
    shape = [sizes[name] for name in clique]
    cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in clique], shape)
    return np.bincount(cells, minlength=int(np.prod(shape)))


@pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")
def test_shares_open_to_the_counts_of_the_people_in_common() -> None:
    """All pairs of columns and some triples; the people that one owner lacks count nowhere."""
    with TABLE.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, np.uint8, delimiter=",", unpack=True)
    codes = dict(zip(names, table, strict=True))
    sizes = {name: int(column.max()) + 1 for name, column in codes.items()}
    people, rng = len(table[0]), np.random.default_rng(20260101)
    held = [rng.permutation(people)[: people * 9 // 10] for _ in range(2)]
    union, both = np.union1d(held[0], held[1]), np.intersect1d(held[0], held[1])
    place = np.empty(people, np.int64)
    place[union] = rng.permutation(len(union))
    owner_of = {name: int(number >= 8) for number, name in enumerate(names)}
    tables = {
        owner: OwnRows(place[own], {name: codes[name][own] for name in names if owner_of[name] == owner})
        for owner, own in enumerate(held)
    }
    cliques: list[Clique] = [*combinations(names, 2)]
    triples: list[Clique] = [*combinations(names, 3)]
    common = {name: column[both] for name, column in codes.items()}
    of = partition(sizes, owner_of, "intersection", len(union))
    marginals, rows, _ = shared_marginals(sizes, of, tables, [cliques, triples[::60]])
    assert rows == [len(both), len(both)]
    for clique, marginal in zip([*cliques, *triples[::60]], marginals, strict=True):
        np.testing.assert_array_equal(marginal, histogram(common, sizes, clique))
