"""Whether integers are discrete Gaussian noise of the parameter that was asked for: a sequential test with a stated error.

Problem: noise may be missing, or too small or too wide, for some questions only. Each such fault is an alternative with a law of
its own; what is seen multiplies the likelihood ratio of alternative and promise, and more is asked for until all are decided.

    R_k = P_k(all draws so far) / P(all draws so far)          K alternatives
    R_k >= K / FALSE_ALARM     found        R_k <= MISSED     ruled out        else: go on

Statement (Ville's inequality; Wald 1945). If all noise is as promised, R_k is a martingale of mean 1, so that some alternative is
ever found with probability FALSE_ALARM at most, whenever one stops and whatever one asks next. If alternative k is the truth, it
is ruled out with probability MISSED at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runner.conformance.checks import expect

FALSE_ALARM, MISSED = 1e-9, 1e-4
MISSING = 0.0
"""The factor of an alternative without any noise."""


@dataclass
class Alternative:
    """A fault. what: in words. factor: its variance, of the promised one; with `MISSING` every draw is 0. log_ratio: of R_k."""

    what: str
    factor: float
    log_ratio: float = 0.0

    def see(self, draws: NDArray[np.int64], sigma2: float) -> None:
        """What was drawn where sigma2 was asked for: at least 1, where the sum of exp(-x^2 / 2 sigma2) is sqrt(2 pi sigma2)."""
        if self.factor == MISSING:
            gain = math.log(2 * math.pi * sigma2) / 2 * draws.size
            self.log_ratio = -math.inf if draws.any() else self.log_ratio + gain
            return
        squares = float((draws.astype(np.float64) ** 2).sum())
        self.log_ratio += squares / (2 * sigma2) * (1 - 1 / self.factor)
        self.log_ratio -= draws.size / 2 * math.log(self.factor)


@dataclass
class Suspicions:
    """All alternatives of one test, by what they are about; they must be there before the first draw is seen."""

    about: dict[str, list[Alternative]] = field(default_factory=dict)

    def add(self, of: str, *factors: float) -> None:
        """Suspect the noise of this of being that much off."""
        words = {
            factor: f"noise of {factor:g} times the variance that was asked for" for factor in factors
        } | {MISSING: "no noise"}
        self.about.setdefault(of, []).extend(
            Alternative(f"{words[factor]}: {of}", factor) for factor in factors
        )

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
