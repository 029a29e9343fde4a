"""Adult split 8 & 7 columns, each owner holding a random nine tenths of the people: a real table for counts before noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from mpc_protocols.partition import OwnRows, Partition

TABLE = Path(__file__).parents[3] / "shared" / "data" / "adult-vfl.csv"
needs_table = pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")


@dataclass(frozen=True)
class AdultOwners:
    """The common table and both owners' rows; common: the codes of the people that both hold."""

    sizes: Mapping[str, int]
    partition: Partition
    owned: Mapping[int, OwnRows]
    common: Mapping[str, NDArray[np.uint8]]

    @property
    def pairs(self) -> list[Clique]:
        """All pairs of columns."""
        return [*combinations(self.sizes, 2)]

    @property
    def triples(self) -> list[Clique]:
        """Some triples."""
        return list[Clique](combinations(self.sizes, 3))[::60]

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Counted in the clear, by another routine than the product's: people that one owner lacks count nowhere."""
        shape = [self.sizes[name] for name in clique]
        cells = np.ravel_multi_index([self.common[name].astype(np.int64) for name in clique], shape)
        return np.bincount(cells, minlength=int(np.prod(shape)))


def adult_owners() -> AdultOwners:
    """The table of `TABLE`, in a random order of the common rows."""
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
    owned = {
        owner: OwnRows(place[own], {name: codes[name][own] for name in names if owner_of[name] == owner})
        for owner, own in enumerate(held)
    }
    of = Partition((0, 1), owner_of, "intersection", {}, len(union))
    return AdultOwners(sizes, of, owned, {name: column[both] for name, column in codes.items()})
