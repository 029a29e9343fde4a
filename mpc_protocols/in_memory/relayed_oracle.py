"""An oracle that asks another one: whoever watches, alters or counts the answers overrides what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.functionality import Clique, Handle, Level, MarginalOracle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RelayedOracle(MarginalOracle):
    """Every question is passed on as it is. oracle: the one that answers."""

    def __init__(self, oracle: MarginalOracle) -> None:
        self.facts, self.oracle = oracle.facts, oracle

    @property
    def row_bound(self) -> int:
        return self.oracle.row_bound

    @property
    def noisy_total(self) -> float | None:
        return self.oracle.noisy_total

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        return self.oracle.prepare(cliques, levels)

    def expect(self, sigma2: Fraction, promised: bool = False) -> None:
        self.oracle.expect(sigma2, promised)

    def expect_counts(self, sigma2: Fraction, number: int) -> None:
        self.oracle.expect_counts(sigma2, number)

    def expect_keys(self, number: int) -> None:
        self.oracle.expect_keys(number)

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        return self.oracle.select(handles, answers, weights, penalties, epsilon, picks, conflicts)

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        return self.oracle.measure(handles, sigma2)

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        return self.oracle.distances(handles, answers, sigma2)

    def total(self, sigma2: Fraction) -> int:
        return self.oracle.total(sigma2)
