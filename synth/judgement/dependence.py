"""Whether measured joint marginals show that columns depend on each other, or no more than noise: a test on
released counts.

Problem: on few rows or at a small epsilon a joint marginal may be little but noise. What to do about it must
not look at the noise alone, for strong dependence shows through much of it; so each purchase is judged by
what it showed.

A pair of columns with released counts y (m x n, noise of variance v in each cell, independent) and total N
has the residual

    r = y - (row sums) (column sums) / N

If the columns are independent in the population that the N rows are drawn from, r is to first order A e B',
where A = I - p 1', B = I - q 1', p and q are the shares of the columns' values, and e is the noise and the
rows' own sampling error. So

    cov r   = v (A A') x (B B') + N (D_p - p p') x (D_q - q q')
    mean    = tr cov r,    variance = 2 tr (cov r)^2     of ||r||^2

whose distribution is close to a scaled chi square with those two moments (Satterthwaite 1946); its cube root
is close to normal (Wilson and Hilferty 1931). Of several pairs both the sum of ||r||^2 / v and the clearest
single one are looked at, and the two (and the number of pairs) are paid for as Bonferroni does. A marginal of
more columns is looked at pair by pair.

Everything here reads released values: post-processing, which costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from synth.mrf import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpc_protocols.functionality import Clique
    from synth.synthesis import Measured

Array = NDArray[np.float64]
Moments = tuple[float, float, float]

EVIDENT = 1.28
"""Of a score: noise alone is as large once in ten times. A purchase made for noise costs less than a relation
thrown away."""
DOUBTFUL = 0.3
"""Of a score that is not evident: noise alone is as large two times in five, so that it is worth a second
look."""
_MAX_SCORE = 8.0  # a normal score beyond which tails are not told apart


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Released counts of two columns (or of their bins). counts: float64 (m, n). variance: of the noise in
    each cell."""

    columns: Clique
    counts: Array
    variance: float

    @property
    def noise_alone(self) -> float:
        """The part of the mean of ||r||^2 that is the noise's."""
        parts = [_spreads(_shares(self.counts.sum(axis=axis)))[0] for axis in (1, 0)]
        return self.variance * float(np.trace(parts[0]) * np.trace(parts[1]))

    @property
    def moments(self) -> Moments:
        """(||r||^2, its mean and its variance if the columns are independent), in units of the noise's
        variance."""
        total = max(1.0, float(self.counts.sum()))
        rows, columns = self.counts.sum(axis=1), self.counts.sum(axis=0)
        noise, sampling = zip(*(_spreads(_shares(sums)) for sums in (rows, columns)), strict=True)
        scale = total / self.variance
        both = scale * _trace_of_product(noise, sampling)
        squares = np.square(noise[0]).sum() * np.square(noise[1]).sum()
        drawn = scale**2 * np.square(sampling[0]).sum() * np.square(sampling[1]).sum()
        mean = np.trace(noise[0]) * np.trace(noise[1]) + scale * np.trace(sampling[0]) * np.trace(sampling[1])
        return (
            float(np.square(residual(self.counts)).sum()) / self.variance,
            float(mean),
            2 * float(squares + 2 * both + drawn),
        )


def residual(counts: Array) -> Array:
    """What two columns' counts, (m, n), have beyond those of independent columns with the same sums."""
    found: Array = counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(1.0, float(counts.sum()))
    return found


def pairs_of(measured: Measured, sizes: Mapping[str, int]) -> list[PairCounts]:
    """The pairs of columns that a measurement tells of. sizes: of the domain's columns."""
    table = measured.values.reshape(measured.shape(sizes)).astype(np.float64)
    found = []
    for first, second in itertools.combinations(range(table.ndim), 2):
        counts = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in (first, second)))
        columns = (measured.columns[first], measured.columns[second])
        found.append(PairCounts(columns, counts, float(measured.sigma2) * table.size / counts.size))
    return found


def score(pairs: Iterable[PairCounts]) -> float:
    """How much more the pairs show than noise and drawing would, as a standard normal score; 0 of nothing.

    Above `EVIDENT` columns are taken to depend on each other.
    """
    moments = [pair.moments for pair in pairs if min(pair.counts.shape) > 1]
    if not moments:
        return 0.0
    together = _normal(*(sum(column) for column in zip(*moments, strict=True)))
    clearest = max(_normal(*of) for of in moments)
    if max(together, clearest) > _MAX_SCORE:
        return max(together, clearest)
    normal = NormalDist()
    chance = 2 * min(normal.cdf(-together), len(moments) * normal.cdf(-clearest))
    return -normal.inv_cdf(chance) if chance < 1 else -_MAX_SCORE


def column_sums(measured: Measured, shape: Sequence[int]) -> list[Measurement]:
    """What a marginal says about each of its columns: its sums, with their noise. shape: of the marginal."""
    table = measured.values.reshape(shape).astype(np.float64)
    axes = range(table.ndim)
    return [
        Measurement(
            (name,),
            table.sum(axis=tuple(other for other in axes if other != axis)),
            float(measured.sigma2) * table.size / table.shape[axis],
        )
        for axis, name in enumerate(measured.clique)
    ]


def _shares(sums: Array) -> Array:
    """Shares of a column's values, none below 0."""
    kept = np.maximum(sums, 0.0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(len(sums), 1 / len(sums))


def _spreads(shares: Array) -> tuple[Array, Array]:
    """(A A', D_p - p p') of a column."""
    projection = np.eye(len(shares)) - np.outer(shares, np.ones(len(shares)))
    return projection @ projection.T, np.diag(shares) - np.outer(shares, shares)


def _trace_of_product(noise: Sequence[Array], sampling: Sequence[Array]) -> float:
    """tr of the product of the two parts of the covariance."""
    return math.prod(float((a * b).sum()) for a, b in zip(noise, sampling, strict=True))


def _normal(size: float, mean: float, variance: float) -> float:
    """A normal score of a quadratic form with this mean and variance."""
    freedom = 2 * mean * mean / variance
    spread = 2 / (9 * freedom)
    return (math.cbrt(max(0.0, size) / mean) - (1 - spread)) / math.sqrt(spread)
