"""Toy backends whose noise has the right size and another law, or that have none in some questions, or in
selections."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Handle
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.rounded_answers import RoundedAnswers
from tests.toys.careless_backends import Counts, MeddledOracle

ASKED = 50
"""Below this variance the toys behave: so that the checks of answers, at hardly any noise, see nothing."""


class AskedOracle(IdealOracle):
    """Marginals whose noise is made anew, by what was asked for it."""

    def measure(self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]) -> Counts:
        noisy = super().measure(handles, sigma2)
        each = [sigma2] * len(handles) if isinstance(sigma2, Fraction) else list(sigma2)
        exact = [self._marginal(handle) for handle in handles]
        noise = [cells - truth for cells, truth in zip(noisy, exact, strict=True)]
        made = self.noise(list(handles), noise, [float(one) for one in each])
        return [truth + cells for truth, cells in zip(exact, made, strict=True)]

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        """What becomes of the right noise of a batch."""
        raise NotImplementedError


class EvenOracle(MeddledOracle):
    """Noise is even: a count's last bit shows."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return 2 * np.rint(noise / 2).astype(np.int64)


class OneSidedOracle(MeddledOracle):
    """Noise has no sign."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return np.abs(noise)


class MirroredOracle(MeddledOracle):
    """Each second cell has the noise of the one before it, with the other sign."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        half, made = len(noise) // 2, noise.copy()
        made[1 : 2 * half : 2] = -made[: 2 * half : 2]
        return made


class BalancedOracle(MeddledOracle):
    """The noise of a marginal of a dozen cells or more sums up to 0."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        if len(noise) < 12:
            return noise
        each, rest = divmod(int(noise.sum()), len(noise))
        return noise - each - (np.arange(len(noise)) < rest)


class UniformOracle(AskedOracle):
    """Uniform noise of the right variance."""

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        rng = np.random.default_rng(secrets.randbits(64))
        bounds = [round(math.sqrt(12 * of) / 2) for of in sigma2]
        return [
            cells if of < ASKED else rng.integers(-bound, bound, cells.size, endpoint=True)
            for cells, of, bound in zip(right, sigma2, bounds, strict=True)
        ]


class SharedOracle(AskedOracle):
    """Small marginals of a batch have the same noise."""

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        longest: dict[float, NDArray[np.int64]] = {}
        for cells, of in zip(right, sigma2, strict=True):
            if len(longest.get(of, ())) < len(cells) < 12:
                longest[of] = cells
        return [
            longest[of][: len(cells)] if len(cells) < 12 else cells
            for cells, of in zip(right, sigma2, strict=True)
        ]


class RememberingOracle(AskedOracle):
    """A small marginal that is measured once more has the noise that it had."""

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        known: dict[Any, NDArray[np.int64]] = self.__dict__.setdefault("_known", {})
        return [
            known.setdefault((handle, of), cells) if len(cells) < 12 else cells
            for handle, cells, of in zip(handles, right, sigma2, strict=True)
        ]


class WideExactOracle(AskedOracle):
    """No noise where much is asked for."""

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        return [cells * (of < 1000) for cells, of in zip(right, sigma2, strict=True)]


class NarrowExactOracle(AskedOracle):
    """No noise where little is asked for."""

    def noise(
        self, handles: Sequence[Handle], right: Counts, sigma2: Sequence[float]
    ) -> Sequence[NDArray[np.int64]]:
        return [cells * (of >= ASKED) for cells, of in zip(right, sigma2, strict=True)]


class ReplaceExactOracle(MeddledOracle):
    """No noise where neighbours differ by one row that is another."""

    def meddle(self, handle: Handle, noise: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
        return noise * (self.facts.adjacency != "replace")


class AlikeDistancesOracle(IdealOracle):
    """All distances of a question have one draw: of middling size, for one of 0 or a large one would be
    another fault."""

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        noisy = super().distances(handles, answers, sigma2)
        sums = [int(np.abs(self._marginal(h) - a).sum()) for h, a in zip(handles, answers, strict=True)]
        noise = noisy - np.array(sums, np.int64)
        return noisy - noise + noise[np.argsort(np.abs(noise))[noise.size // 2]] if sigma2 >= ASKED else noisy


class BestOracle(IdealOracle):
    """Selections without noise; equal scores are told apart by chance."""

    def _pick(self, plan: SelectionPlan, rounded: RoundedAnswers) -> list[int]:
        scores = dict(zip(plan.contenders, self._scores(plan, rounded), strict=True))
        picked: list[int] = []
        while len(picked) < plan.picks and (candidates := plan.candidates(picked)):
            most = max(scores[q] for q in candidates)
            picked.append(secrets.choice([q for q in candidates if scores[q] == most]))
        return picked


class UnevenBestOracle(BestOracle):
    """Selections without noise where candidates have different weights."""

    def _pick(self, plan: SelectionPlan, rounded: RoundedAnswers) -> list[int]:
        uneven = len(set(plan.weights)) > 1
        return super()._pick(plan, rounded) if uneven else IdealOracle._pick(self, plan, rounded)


class QuietPicksOracle(IdealOracle):
    """Half of the noise in selections."""

    def _scores(self, plan: SelectionPlan, rounded: RoundedAnswers) -> list[int]:
        return [2 * score for score in super()._scores(plan, rounded)]
