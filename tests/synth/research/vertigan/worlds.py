"""A tiny study of two owners, with coins that tests can repeat and permute."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.research.vertigan.algorithm import ALGORITHM
from synth.research.vertigan.coins import Coins, gumbel
from synth.research.vertigan.config import VertiGanConfig
from synth.research.vertigan.plan import VertiGanPlan
from synth.research.vertigan.seats import LANES
from synth.workload import Workload

DOMAIN = Domain.from_spec({"columns": {"a": 3, "b": 2, "c": 4, "d": 2, "e": 5}})
OWNERS = {"a": "north", "b": "north", "c": "south", "d": "south", "e": "south"}
ROWS = 300


def plan(epsilon: float = 4.0, adjacency: Any = "add-remove", **config: Any) -> VertiGanPlan:
    """Of a study whose owners have not met."""
    settings = {"rounds": 3, "critic_steps": 2, "rate": 0.2, **config}
    return ALGORITHM.plan(
        DOMAIN,
        Workload.from_spec({"degree": 2}, DOMAIN),
        VertiGanConfig(**settings),
        epsilon=epsilon,
        delta=1e-6,
        adjacency=adjacency,
    )


def table(seed: int, rows: int = ROWS) -> dict[str, NDArray[np.uint8]]:
    """Columns that depend on each other, across owners too."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, rows)
    return {
        name: ((kind + (rng.random(rows) < 0.2)) % size).astype(np.uint8)
        for name, size in DOMAIN.sizes.items()
    }


def seeded(seed: int) -> Callable[[int], bytes]:
    """Bytes that are the same again."""
    return np.random.default_rng(seed).bytes


class CoinsOfRows(Coins):
    """Coins that belong to rows and steps: row r of the table has those of the person `people[r]`, of so many
    there are."""

    def __init__(self, seed: int, people: NDArray[np.int64], everybody: int = ROWS) -> None:
        super().__init__(seeded(seed))
        self._people, self._everybody, self._dealt = people, everybody, np.random.default_rng(seed + 1)

    def included(self, rows: int, rate: Fraction) -> NDArray[np.int64]:
        """See `Coins`."""
        return np.flatnonzero(self._dealt.random(self._everybody)[self._people] < float(rate))

    def fakes(
        self, rows: NDArray[np.int64], latent: int, width: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """See `Coins`."""
        who = self._people[rows]
        count = self._everybody
        z = self._dealt.standard_normal((count, latent), np.float32)[who]
        uniform = self._dealt.random((count, width)).clip(1e-9, 1 - 1e-7)[who]
        return z, gumbel(uniform), self._dealt.random((count, 1)).astype(np.float32)[who]

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Coins`."""
        return self._dealt.integers(0, LANES, self._everybody)[self._people[rows]]
