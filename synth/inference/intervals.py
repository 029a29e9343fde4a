"""From an estimate and what disturbs it to an interval.

For a ratio of counts a / b the test is inverted (Fieller 1954 for the noise, Wilson 1927 for the sampling of
a share): the interval is the set of values r for which

    (a - r b)^2 <= z^2 ( v_aa - 2 r v_ab + r^2 v_bb + s(r) )

with v the covariances of a and b by the noise, and s(r) the sampling variance of a - r b: b r (1 - r) for a
share, b times the variance in the group for a mean, 0 for these rows. It is right where a share is near 0 or
1, and unbounded where the group may be empty; then there is no answer. Sums, differences and quotients of two
such ratios follow from the intervals of both. Everything else is normal by its linearisation, means and all that
with Student's deviate for how far the people's variance is itself known, further out on the side to which they are
skewed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from synth.inference.licence import Uncertain

MIN_PEOPLE = 5.0
"""Of the effective number of people behind an answer. A number of people has about so many degrees of freedom
twice over as it has people: with these its intervals hold (`docs/design/inference.md` 5)."""
MIN_SKEWNESS = 1e-6
"""From which on it is looked at: a smaller one moves no limit that anybody could see."""
TOO_FEW = (
    "By the measurements and their noise too few people decide the answer for an interval about others: ask for these rows "
    "alone, or about a larger group."
)
ZERO = "The question divides by a number that may be 0, by the measurements and their noise."


def critical(level: float, answers: int = 1) -> float:
    """The normal deviate of a two-sided level, of which so many hold together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - level) / (2 * answers))


Deviates = tuple[float, float]
"""How many standard errors an interval reaches below and above its estimate."""


def wald(value: float, variance: float, deviates: Deviates) -> tuple[float, float]:
    """So many standard errors about value."""
    error = math.sqrt(max(0.0, variance))
    return value - deviates[0] * error, value + deviates[1] * error


def student(z: float, variance: float, third: float, fourth: float) -> Deviates:
    """The deviates of z's tails for an estimate whose variance is partly that of the people who were seen. third, fourth:
    the sums of these powers of what each of them adds to it; the fourth's is about the variance of that variance
    (Satterthwaite 1946).

    Raises `Uncertain` where too few people decide.
    """
    if variance**2 < MIN_PEOPLE * fourth:
        raise Uncertain(TOO_FEW)
    if not fourth > 0:
        return z, z
    from scipy.special import stdtrit  # only who asks waits for it

    most = math.sqrt(fourth) / variance  # of any skewness; by an estimate with noise it may be more
    skewness = min(most, max(-most, third / variance**1.5))
    return lopsided(float(-stdtrit(2 * variance**2 / fourth, NormalDist().cdf(-z))), skewness)


def lopsided(deviate: float, skewness: float) -> Deviates:
    """The deviates of an estimate of this skewness, divided by a standard error that goes up and down with it: a cubic of
    that is normal to second order (Hall 1992). On neither side less than without."""
    if abs(skewness) < MIN_SKEWNESS:
        return deviate, deviate

    def quantile(normal: float) -> float:
        cube = 1 + skewness * (normal - skewness / 6)
        return 3 / skewness * (math.cbrt(cube) - 1)

    return max(deviate, quantile(deviate)), max(deviate, -quantile(-deviate))


def skewed(hits: float, z: float) -> float:
    """By how many rows a count of few is more often too large by z deviations than it is too small (Cornish
    and Fisher 1938, of a Poisson variable); 0 of many."""
    return max(0.0, z * z - 1) / 6 if hits < 4 * z * z else 0.0


def count(value: float, noise: float, z: float, rows: float) -> tuple[float, float]:
    """Of how many of so many rows are expected to be of a kind, of whom value were counted with noise: a share's, times
    the rows. Beyond all rows nobody is drawn, and there is the noise alone."""
    low, high = ratio(min(value, rows), rows, (noise, 0.0, 0.0), (z, z), None, "The table")
    return low * rows, high * rows if high <= 1 else max(rows, value + z * math.sqrt(noise))


@dataclass(frozen=True)
class Ranged:
    """An estimate with its interval."""

    value: float
    low: float
    high: float

    def wider(self, below: float, above: float) -> Ranged:
        """By such factors, on either side of the estimate."""
        value = self.value
        return Ranged(value, value - below * (value - self.low), value + above * (self.high - value))


Halves = tuple[float, float]


@dataclass(frozen=True)
class Together:
    """How two estimates go together. sizes: their standard errors, for a quotient as shares of the estimates."""

    correlation: float
    sizes: tuple[float, float]

    @property
    def is_close(self) -> bool:
        """Whether one takes the other along by half of its size or more, as of groups that overlap."""
        least, most = sorted(self.sizes)
        return self.correlation * most > least / 2

    def sides(self, own: Halves, others: Halves) -> list[Halves]:
        """How far either may be from its estimate at a limit of their difference. own: one below and the other
        above it, or the reverse, as independent ones are; others: of the other limits. One that is taken along by
        half of its size or more may be on either side of its estimate."""
        first, second = self.sizes
        found = [own]
        if self.correlation * second > first / 2:
            found.append((others[0], own[1]))
        if self.correlation * first > second / 2:
            found.append((own[0], others[1]))
        return found


def difference(one: Ranged, other: Ranged, together: Together) -> tuple[float, float]:
    """Of one - other, from the interval of each: the variance on either side is recovered from the limit
    there (Zou and Donner 2008)."""

    def half(own: Halves, others: Halves) -> float:
        return max(
            math.sqrt(max(0.0, a * a + b * b - 2 * together.correlation * a * b))
            for a, b in together.sides(own, others)
        )

    value = one.value - other.value
    down, up = _opposite(one, other)
    return value - half(down, up), value + half(up, down)


def quotient(one: Ranged, other: Ranged, together: Together) -> tuple[float, float]:
    """The same of one / other, both at least 0 (Donner and Zou 2012). Raises `Uncertain` if the divisor may
    be 0."""
    if other.low <= 0 or 2 * other.value <= other.high:
        raise Uncertain(ZERO)

    def limit(sides: Halves, sign: float) -> float:
        a, b = sides
        product = one.value * other.value - together.correlation * a * b
        second = other.value**2 - b * b
        root = product * product - (one.value**2 - a * a) * second
        return (product + sign * math.sqrt(max(0.0, root))) / second

    down, up = _opposite(Ranged(one.value, max(0.0, one.low), one.high), other)
    low = min(limit(sides, -1.0) for sides in together.sides(down, up))
    return max(0.0, low), max(limit(sides, 1.0) for sides in together.sides(up, down))


def _opposite(one: Ranged, other: Ranged) -> tuple[Halves, Halves]:
    """One at its lower limit and the other at its upper one, and the reverse: how far from the estimates."""
    down = one.value - one.low, other.high - other.value
    return down, (one.high - one.value, other.value - other.low)


def fraction(
    value: float,
    bottom: float,
    sizes: tuple[float, float, float],
    variance: float,
    deviates: Deviates,
    zero: str = ZERO,
) -> tuple[float, float]:
    """Fieller's, of a quotient. bottom: its divisor. sizes: the standard errors of numerator and divisor, and
    their correlation; variance: of the quotient's linearisation.

    Raises `Uncertain`, with the sentence for it, if the divisor may be 0.
    """
    first, second, correlation = sizes
    b, both = abs(bottom), correlation * first * second
    if b <= max(deviates) * second:
        raise Uncertain(zero)
    told = first**2 - 2 * value * both + (value * second) ** 2
    # where columns were not measured together each of these is the most that it may be, and so is their sum
    more = max(1.0, variance * b * b / told) if told > 0 else 1.0
    noise = more * first**2, more * both, more * second**2
    return ratio(value * b, b, noise, deviates, 0.0, "The divisor")


def bent(
    value: float, ends: tuple[float, float], bend: float, noise_share: float, sentence: str
) -> tuple[float, float]:
    """An interval of a logistic coefficient, where the information goes up by exp(bend) a unit. What an estimate leaves of
    the outcome at another value is the sum of the information between both, and the variance of that is, but for the
    noise's share, the information there: of people alone both all but make up for one another
    (`docs/design/inference.md` 5). ends: without that.

    Raises `Uncertain`, with the sentence for it, where it has no end.
    """

    def reach(distance: float, falls: float) -> float:
        size = falls * distance
        if not size > 0:
            return distance
        half, left = 1 + size * size * (1 - noise_share) / 2, 1 - size * size * noise_share
        if left <= 0:
            raise Uncertain(sentence)
        return max(distance, -math.log(half - math.sqrt(half * half - left)) / falls)

    return value - reach(value - ends[0], bend), value + reach(ends[1] - value, -bend)


def ratio(
    a: float,
    b: float,
    noise: tuple[float, float, float],
    deviates: Deviates,
    sampling: float | None,
    group: str,
) -> tuple[float, float]:
    """The interval of a / b. noise: v_aa, v_ab, v_bb. sampling: s, a number; None for a share's, b r (1 - r), and
    `skewed` where a or b - a are few.

    Raises `Uncertain` if b may be 0.
    """
    aa, ab, bb = noise
    people = max(b, 0.0) if sampling is None else 0.0
    if b <= 0 or b * b <= max(deviates) ** 2 * bb:
        raise Uncertain(
            f"{group} may be empty: by the measurements it has {b:,.0f} rows, and their noise is {math.sqrt(bb):,.0f}; ask about "
            "a larger group."
        )

    def limit(seen: float, sign: float) -> float:
        """A r^2 - 2 B r + C = 0, or the point that is least unlikely."""
        z2 = deviates[sign > 0] ** 2
        first = b * b - z2 * bb + z2 * people
        second = seen * b - z2 * ab + z2 * people / 2
        third = seen * seen - z2 * aa - z2 * (sampling or 0.0)
        return (second + sign * math.sqrt(max(0.0, second * second - first * third))) / first

    if sampling is not None:
        return limit(a, -1.0), limit(a, 1.0)
    least, most = a - skewed(a, deviates[0]), a + skewed(b - a, deviates[1])
    return min(limit(least, -1.0), max(least, 0.0) / b), max(limit(most, 1.0), min(most, b) / b)
