"""Calibration: what the training sees of a label's probability, and the way back to the truth
(`docs/design/florist.md` 4).

Source: FLORIST, section 3.3, with its two-sided fractions corrected: in a union nobody is missing on both
sides, so these are functions of the sizes that the alignment has shown, n_a (active owner), n_p (passive
owner) and u:

    w11 = (n_a + n_p - u) / u    both rows real            w10 = (u - n_p) / u    label real, features invented
    w01 = (u - n_a) / u          label invented, features real

Where invented features follow the law of real ones, a row of features x has the label 1 with probability

    D'(1|x) = a D(1|x) + b = (w11 D(1|x) + w10 pi + w01 q) / (w11 + w10 + w01),     q = P(invented label is 1 | x)

pi the rate of label 1. Invented embeddings that do not look like real ones (`gaussian`, `random`) are told
apart by the network: w10 leaves the sum. Labels by the model's own probability pull it nowhere in
expectation: w01 leaves it. Labels of neighbours stand for D itself. A response with flips of probability f: a
(1 - 2 f), b (1 - 2 f) + f. Standard library only at import.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.process.later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAJORITY, MINORITY, RANDOM_POS, RANDOM_PRED, NEIGHBORS = LABELS = (
    "majority",
    "minority",
    "random-pos",
    "random-pred",
    "neighbors",
)
"""How labels of records that the active owner lacks are invented."""
GAUSSIAN, RANDOM, SAMPLING, MODEL = FEATURES = ("gaussian", "random", "sampling", "model")
"""How features of records that the passive owner lacks are invented."""
TRAIN, TEST, NONE = CALIBRATIONS = ("train", "test", "none")
BINS = 32
"""Of the probability, in an evaluation."""
HELD_OUT = 10
"""One row in so many is not trained on."""


@dataclass(frozen=True)
class Sizes:
    """Lengths of both owners' lists as the other has seen them, dummies included, and u."""

    active: int
    passive: int
    union: int

    @property
    def fractions(self) -> tuple[float, float, float]:
        """(w11, w10, w01); noisy sizes may contradict each other, which never makes one negative."""
        n_a, n_p, u = self.active, self.passive, max(1, self.union)
        return max(0, n_a + n_p - u) / u, max(0, u - n_p) / u, max(0, u - n_a) / u


@dataclass(frozen=True)
class Correction:
    """D' = slope D + offset."""

    slope: float = 1.0
    offset: float = 0.0


def correction(labels: str, features: str, rate: float, sizes: Sizes, flip: float = 0.0) -> Correction:
    """The line from the true probability to what the training sees. rate: pi. flip: probability that a label
    is flipped."""
    w11, w10, w01 = sizes.fractions
    if features in (GAUSSIAN, RANDOM):
        w10 = 0.0
    if labels == RANDOM_PRED:
        w01 = 0.0
    whole = (w11 + w10 + w01) or 1.0
    slope, offset = w11 + (w01 if labels == NEIGHBORS else 0.0), w10 * rate
    offset += w01 * {MINORITY: 1.0, RANDOM_POS: rate}.get(labels, 0.0)
    slope, offset = slope / whole, offset / whole
    return Correction(slope * (1 - 2 * flip), offset * (1 - 2 * flip) + flip)


def corrected(probabilities: NDArray[np.float64], line: Correction) -> NDArray[np.float64]:
    """(p - offset) / slope, clipped to [0, 1]."""
    if line.slope <= 0:
        return np.clip(probabilities, 0.0, 1.0)
    return np.clip((probabilities - line.offset) / line.slope, 0.0, 1.0)


def flip_numerator(epsilon: Fraction) -> int:
    """The least n with n / 2^64 >= 1 / (1 + e^epsilon): how many of 2^64 coins flip a label; at most half of
    them."""
    with localcontext(prec=60):
        odds = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        exact = Decimal(1 << 64) / (1 + odds) * (1 + Decimal(10) ** -50)
        return min(1 << 63, int(exact.to_integral_value(ROUND_CEILING)))
