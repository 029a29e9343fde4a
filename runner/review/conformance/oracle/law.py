"""Whether integers are discrete Gaussian noise of the parameter that was asked for: a sequential test with a
stated error.

Problem: noise may be missing, or too small or too wide, for some questions only. Each such fault is an
alternative with a law of its own; what is seen multiplies the likelihood ratio of alternative and promise,
and more is asked for until all are decided.

    R_k = P_k(all draws so far) / P(all draws so far)          K alternatives
    R_k >= K / FALSE_ALARM     found        R_k <= MISSED     ruled out        else: go on

Statement (Ville's inequality; Wald 1945). If all noise is as promised, R_k is a martingale of mean 1, so that
some alternative is ever found with probability FALSE_ALARM at most, whenever one stops and whatever one asks
next. If alternative k is the truth, it is ruled out with probability MISSED at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runner.review.conformance.checks import expect

FALSE_ALARM, MISSED = 1e-9, 1e-4
MISSING = 0.0
"""The factor of an alternative without any noise."""


@dataclass
class Alternative:
    """A fault. what: in words. log_ratio: of R_k."""

    what: str
    log_ratio: float = 0.0

    def see(self, draws: NDArray[np.int64], sigma2: float) -> None:
        """What was drawn where sigma2 was asked for: at least 1, where the sum of exp(-x^2 / 2 sigma2) is
        sqrt(2 pi sigma2)."""
        self.log_ratio += self.gain(draws, sigma2)

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        """ln of the likelihood ratio of these draws; -inf if the fault cannot give them."""
        raise NotImplementedError


@dataclass
class Scaled(Alternative):
    """factor: its variance, of the promised one; with `MISSING` every draw is 0."""

    factor: float = 1.0

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        if self.factor == MISSING:
            return -math.inf if draws.any() else math.log(2 * math.pi * sigma2) / 2 * draws.size
        squares = float((draws.astype(np.float64) ** 2).sum())
        return squares / (2 * sigma2) * (1 - 1 / self.factor) - draws.size / 2 * math.log(self.factor)


class Even(Alternative):
    """The right noise, of which odd values are left out: whoever sees a count learns whether it is even."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        return -math.inf if (draws % 2).any() else math.log(2) * draws.size


class OneSided(Alternative):
    """The right noise without its sign."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        return -math.inf if (draws < 0).any() else math.log(2) * np.count_nonzero(draws)


class Bounded(Alternative):
    """Uniform noise of the right variance: what is farther from a count than its bound, the count cannot be."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        bound = round((math.sqrt(12 * sigma2 + 1) - 1) / 2)
        if np.abs(draws).max(initial=0) > bound:
            return -math.inf
        return _surprise(draws, sigma2) - math.log(2 * bound + 1) * draws.size


class Balanced(Alternative):
    """Noise that sums up to 0 over an answer: the total is exact."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        return -math.inf if draws.sum() else math.log(2 * math.pi * sigma2 * draws.size) / 2


class Mirrored(Alternative):
    """Every second draw is the one before it with the other sign: sums of two neighbours are exact."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        half = draws.size // 2
        first, second = draws[: 2 * half : 2], draws[1 : 2 * half : 2]
        return -math.inf if (first + second).any() else _surprise(second, sigma2)


class Alike(Alternative):
    """All draws of an answer are one: differences of its numbers are exact."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        return -math.inf if np.ptp(draws) else _surprise(draws[1:], sigma2)


class Copied(Alternative):
    """The second half of what is seen is the first half once more: the difference of two answers is exact."""

    def gain(self, draws: NDArray[np.int64], sigma2: float) -> float:
        first, second = np.split(draws, 2)
        return -math.inf if (first - second).any() else _surprise(second, sigma2)


def _surprise(draws: NDArray[np.int64], sigma2: float) -> float:
    """-ln of the promised chance of all these draws."""
    squares = float((draws.astype(np.float64) ** 2).sum())
    return squares / (2 * sigma2) + draws.size / 2 * math.log(2 * math.pi * sigma2)


_ONE_BY_ONE = {
    "noise that is always even": Even,
    "noise that is never below 0": OneSided,
    "noise that is bounded": Bounded,
}
_TOGETHER = {
    "noise that sums up to 0": Balanced,
    "noise whose neighbours sum up to 0": Mirrored,
    "one draw for all": Alike,
}


@dataclass
class Suspicions:
    """All alternatives of one test, by what they are about; they must be there before the first draw is seen."""

    about: dict[str, list[Alternative]] = field(default_factory=dict)

    def add(self, of: str, *factors: float) -> None:
        """Suspect the noise of this of being that much off."""
        words = {
            factor: f"noise of {factor:g} times the variance that was asked for" for factor in factors
        } | {MISSING: "no noise"}
        self._about(of).extend(Scaled(f"{words[factor]}: {of}", factor=factor) for factor in factors)

    def add_shapes(self, of: str, *, alone: bool) -> None:
        """Suspect it of having the right size and another law. alone: whether each of its answers is a single
        draw."""
        shapes = _ONE_BY_ONE | ({} if alone else _TOGETHER)
        self._about(of).extend(shape(f"{words}: {of}") for words, shape in shapes.items())

    def add_copies(self, of: str) -> None:
        """Suspect two answers, which are shown as one, of having the same noise."""
        self._about(of).append(Copied(f"the same noise twice: {of}"))

    def _about(self, of: str) -> list[Alternative]:
        return self.about.setdefault(of, [])

    def see(self, names: Iterable[str], draws: NDArray[np.int64], sigma2: float) -> None:
        """Draws that are part of each of these. Raises if one of them is found to be off."""
        number = sum(map(len, self.about.values()))
        for of in names:
            for alternative in self.about[of]:
                alternative.see(draws, sigma2)
                expect(
                    alternative.log_ratio < math.log(number / FALSE_ALARM),
                    f"noise must have the law that was asked for, and there is {alternative.what}.",
                )

    def undecided(self, of: str) -> bool:
        """Whether this may still be off."""
        return any(alternative.log_ratio > math.log(MISSED) for alternative in self.about[of])
