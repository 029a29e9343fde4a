"""What a release costs, and how much noise a cost buys: exact rationals, the same at every party.

One privacy unit holds at most s rows. Between neighbouring tables (`docs/design/privacy.md` 2;
`docs/design/mechanisms.md` 3.2)

    add-remove   a marginal moves by at most s in L2; a released marginal costs rho = s^2 / (2 sigma^2)
    replace      a marginal moves by at most sqrt(2) s in L2;               rho = s^2 / sigma^2

the number of rows moves by at most s and costs s^2 / (2 sigma^2) under both (`mechanisms/measurement.py`),
and a selection whose log ratios lie in an interval of length epsilon costs epsilon^2 / 8, whatever the
adjacency: the oracle scales its integer weights by the sensitivity (s or 2 s times the largest weight), not
its epsilon. Noise parameters are rounded so that a release never costs more than was asked: sigma^2 up,
epsilon down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Adjacency
from mpc_protocols.mechanisms.gaussian import MAX_TABLE_SIGMA2, MIN_SIGMA2

MAX_EPSILON = Fraction(2)
"""The most one selection is given: its noise is then about one unit's change of a score, and more would buy
nothing."""

_TWO_OVER_PI = Fraction("0.636619772367581343075535053490057448137838582961825795")
_BITS = 40


@dataclass(frozen=True)
class Charges:
    """Costs under one adjacency for units of at most `unit_rows` rows."""

    adjacency: Adjacency
    unit_rows: int

    def __post_init__(self) -> None:
        if self.adjacency not in ("add-remove", "replace"):
            raise StudyInvalid(
                f'[privacy] adjacency must be "add-remove" or "replace", got {self.adjacency!r}.'
            )
        if isinstance(self.unit_rows, bool) or not isinstance(self.unit_rows, int) or self.unit_rows < 1:
            raise StudyInvalid(
                f"[privacy] unit needs a number of rows of at least 1, got {self.unit_rows!r}."
            )

    @property
    def cells_moved(self) -> int:
        """Cells of a marginal that may differ between neighbours: whose samplers' statistical distance counts
        (`docs/design/mechanisms.md` 3.2)."""
        return self.unit_rows * (2 if self.adjacency == "replace" else 1)

    def measuring(self, sigma2: Fraction) -> Fraction:
        """rho of one marginal released with noise sigma2; its squared L2 sensitivity is s^2, replace: 2 s^2."""
        return self.unit_rows * self.cells_moved / (2 * sigma2)

    def sigma2(self, rho: Fraction) -> Fraction:
        """The least noise (to 40 bits, rounded up) at which one released marginal costs at most rho."""
        return max(significant(self.unit_rows * self.cells_moved / (2 * rho), _BITS, up=True), MIN_SIGMA2)

    def counting(self, sigma2: Fraction) -> Fraction:
        """rho of the number of rows released with noise sigma2; its sensitivity is s (replace: at most that)."""
        return self.unit_rows * self.unit_rows / (2 * sigma2)

    def total_sigma2(self, rho: Fraction) -> Fraction:
        """The least noise (to 40 bits, rounded up) at which the number of rows costs at most rho."""
        return max(significant(self.unit_rows * self.unit_rows / (2 * rho), _BITS, up=True), MIN_SIGMA2)

    def measuring_distances(self, sigma2: Fraction, count: int) -> Fraction:
        """rho of so many L1 distances released with noise sigma2 each: a unit moves every one by s, replace:
        2 s."""
        return count * self.cells_moved**2 / (2 * sigma2)

    def distances_sigma2(self, rho: Fraction, count: int) -> Fraction:
        """The least noise (to 40 bits, rounded up) at which so many L1 distances cost at most rho together."""
        return max(significant(count * self.cells_moved**2 / (2 * rho), _BITS, up=True), MIN_SIGMA2)

    @staticmethod
    def selecting(epsilon: Fraction) -> Fraction:
        """rho of one selection: bounded range epsilon (`docs/design/mechanisms.md` 1.1 L1)."""
        return epsilon * epsilon / 8

    @staticmethod
    def epsilon(rho: Fraction) -> Fraction:
        """The largest epsilon (to 40 bits, rounded down) of a selection that costs at most rho; at most
        MAX_EPSILON."""
        return min(root(8 * rho), MAX_EPSILON)

    def distance(self, sigma2: Fraction) -> Fraction:
        """Bound of what one marginal released at noise sigma2 or less adds to beta: its sampler's distance in
        the cells moved."""
        return self.cells_moved * cell_distance(sigma2)


def cell_distance(sigma2: Fraction) -> Fraction:
    """Bound of the total variation between one cell's noise and the exact distribution, for every noise up to
    sigma2.

    A half table of B thresholds is within (B + 2) 2^-65 of the exact distribution and has B <= 9.2 sigma + 3;
    the sum of two that serves above sigma = 100 has B <= 25 sqrt(sigma) + 6 in all and adds at most 2^-70
    (`docs/design/mechanisms.md` 3.1, 3.3).
    """
    sigma = root(sigma2) + 1
    one = 10 * min(sigma, Fraction(101)) + 8
    two = 25 * (root(sigma) + 1) + 8 if sigma2 > MAX_TABLE_SIGMA2 else Fraction(0)
    return max(one, two) / 2**65 + Fraction(1, 2**70)


@lru_cache(maxsize=16)
def mean_noise(sigma2: Fraction) -> Fraction:
    """sqrt(2/pi) sigma, the mean of |noise| in one cell (rounded down at the 40th bit)."""
    return root(_TWO_OVER_PI * sigma2)


def significant(x: Fraction, bits: int, *, up: bool) -> Fraction:
    """x > 0 rounded to this many significant bits: a rational short enough to travel, on the side that is
    asked for."""
    shift = bits - (x.numerator.bit_length() - x.denominator.bit_length())
    above, below = x.numerator << max(shift, 0), x.denominator << max(-shift, 0)
    scaled = -(-above // below) if up else above // below
    return Fraction(scaled << max(-shift, 0), 1 << max(shift, 0))


def root(x: Fraction, bits: int = 40) -> Fraction:
    """The square root of x > 0, rounded down to about this many significant bits."""
    shift = max(bits - (x.numerator.bit_length() - x.denominator.bit_length()) // 2, 0)
    return Fraction(math.isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)
