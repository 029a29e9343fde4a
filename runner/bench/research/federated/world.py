"""What a method is given: everybody's rows, who holds them, who arrives when, and the promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, LocalCounts
from runner.bench.utility.tables import Table
from synth.judgement.metrics import marginal
from synth.mrf import Model


@dataclass(frozen=True)
class World:
    """One simulated study. places: of each row its client. arrivals: of each round the clients that are
    there, also those that were there before. seed: of all noise; public data only."""

    table: Table
    places: NDArray[np.int64]
    clients: int
    arrivals: tuple[tuple[int, ...], ...]
    epsilon: float
    delta: float
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """Of the noise."""
        return np.random.default_rng([self.seed, 20])

    @cached_property
    def rows(self) -> list[NDArray[np.int64]]:
        """Of each client."""
        order = np.argsort(self.places, kind="stable")
        ends = np.cumsum(np.bincount(self.places, minlength=self.clients))[:-1]
        return np.split(self.table.codes[order], ends)

    @property
    def newcomers(self) -> list[tuple[int, ...]]:
        """Of each round, who is there for the first time."""
        seen: set[int] = set()
        found: list[tuple[int, ...]] = []
        for round_ in self.arrivals:
            found.append(tuple(k for k in round_ if k not in seen))
            seen.update(round_)
        return found

    @property
    def arrived(self) -> tuple[int, ...]:
        """Everybody who came at all."""
        return tuple(sorted({k for round_ in self.arrivals for k in round_}))

    def union(self, clients: Sequence[int]) -> NDArray[np.int64]:
        """The rows of these clients together."""
        return np.concatenate([self.rows[k] for k in clients])

    def counter(self, codes: NDArray[np.int64]) -> LocalCounts:
        """Marginals of rows."""
        domain = self.table.domain

        def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
            return [marginal(codes, domain, clique) for clique in cliques]

        return counts


def arrivals(
    clients: int, chance: float, rounds: int, rng: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """In each round every client is there with this chance, by itself; a round in which nobody is is drawn
    again."""
    found: list[tuple[int, ...]] = []
    while len(found) < rounds:
        there = np.flatnonzero(rng.random(clients) < chance)
        if len(there):
            found.append(tuple(map(int, there)))
    return tuple(found)


@dataclass(frozen=True)
class Outcome:
    """What a method made: a model, or a table of codes without one.

    rho_share: what the record that is charged most was charged, of what may be; None without a promise.
    """

    model: Model | None
    rows: int
    rho_share: Fraction | None
    codes: NDArray[np.int64] | None = None
