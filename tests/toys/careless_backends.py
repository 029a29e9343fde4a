"""Toy backends, each careless about one thing: noise that is known or missing. What the conformance suite
must find."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.backend import Ideal
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Guard, Handle, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.public.history import NO_HISTORY, History

Counts = list[NDArray[np.int64]]


class SeededOracle(IdealOracle):
    """The same noise in every run."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._randomness = np.random.default_rng(self._seed()).bytes

    def _seed(self) -> int:
        return 7


class SessionOracle(SeededOracle):
    """Noise that whoever knows the run's public id can compute."""

    def _seed(self) -> int:
        return int.from_bytes(self.facts.session, "big")


class SeededPicksOracle(IdealOracle):
    """The same selections in every run; everything else has noise of its own."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._same = np.random.default_rng(7)

    def _uniform_bytes(self, bits: int, count: int) -> bytes:
        return self._same.bytes((bits + 7) // 8 * count)


class SeededTotalOracle(SeededOracle):
    """The same noise of the number of rows in every run; of marginals, distances and selections a fresh one."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seeded, self._randomness = self._randomness, IdealOracle(*given, **named)._randomness

    def total(self, sigma2: Fraction) -> int:
        fresh, self._randomness = self._randomness, self._seeded
        value = super().total(sigma2)
        self._randomness = fresh
        return value


class MeddledOracle(IdealOracle):
    """Marginals whose noise becomes something else."""

    def measure(self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]) -> Counts:
        measured = []
        for handle, noisy in zip(handles, super().measure(handles, sigma2), strict=True):
            exact = self._marginal(handle)
            measured.append(exact + self.meddle(handle, noisy - exact, len(handles)))
        return measured

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        """What becomes of the noise of a marginal that is measured in a batch of so many."""
        raise NotImplementedError


class LargeExactOracle(MeddledOracle):
    """No noise for marginals of 200 cells or more."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise * (noise.size < 200)


class SmallExactOracle(MeddledOracle):
    """No noise for marginals of one cell."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise * (noise.size > 1)


class DerivedExactOracle(MeddledOracle):
    """No noise for marginals that are sums of shared ones."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise * self._state.derivation(handle).is_identity


class BatchExactOracle(MeddledOracle):
    """No noise for marginals that are measured with more than ten others."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise * (batch <= 10)


class TailExactOracle(MeddledOracle):
    """No noise for the cells after the last full block of 192, where there is one."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return np.where(np.arange(noise.size) < max(noise.size // 192, 1) * 192, noise, 0)


class LateExactOracle(MeddledOracle):
    """No noise for the cells from 3,000 on: beyond the largest size that is tried many times."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return np.where(np.arange(noise.size) < 3_000, noise, 0)


class LastBatchExactOracle(MeddledOracle):
    """No noise for the cells after the first 2^18."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return np.where(np.arange(noise.size) < 1 << 18, noise, 0)


class LargeNarrowOracle(MeddledOracle):
    """Half the noise for marginals of 1,000 cells or more."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise // 2 if noise.size >= 1000 else noise


class RepeatingOracle(MeddledOracle):
    """The noise of 32 cells over and over again."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return np.resize(noise[:32], noise.shape)


class FewDistancesOracle(IdealOracle):
    """No noise for distances where there are more than ten."""

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        noisy = super().distances(handles, answers, sigma2)
        sums = [int(np.abs(self._marginal(h) - a).sum()) for h, a in zip(handles, answers, strict=True)]
        return np.array(sums, np.int64) if len(handles) > 10 else noisy


class Careless(Ideal):
    """`ideal` with another oracle."""

    def __init__(self, oracle: type[IdealOracle]) -> None:
        self._oracle = oracle

    def oracle(
        self, facts: StudyFacts, counts: LocalCounts, guard: Guard, history: History = NO_HISTORY
    ) -> MarginalOracle:
        return self._oracle(facts, counts, guard, history=history)
