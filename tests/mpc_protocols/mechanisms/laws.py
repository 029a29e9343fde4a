"""Exact laws of the implemented mechanisms, computed apart from them: the oracles of the tests in this
folder.

`exhaustive` enumerates every random bit of a tiny table. `enumerated` sums big integers over every value of a
key: exact, slow, small grids. `law` is the same sum in closed form: between two breakpoints the winner's
probability is constant and every other key's distribution function is linear, so a segment is a sum of a
product of linear functions. All its terms are positive, so float64 keeps it to about 1e-12 relative; the
tests compare it with `enumerated`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product

import mpmath
import numpy as np
from numpy.typing import NDArray

from mpc_protocols.mechanisms import gumbel

Floats = NDArray[np.float64]
Select = Callable[[Sequence[int], Sequence[int], Sequence[int]], int]


@dataclass(frozen=True)
class Table:
    """Integer thresholds of a noise K = low + #{k : U >= t_k} with U uniform on `bits` bits."""

    low: int
    bits: int
    thresholds: tuple[int, ...]

    @cached_property
    def cdf(self) -> Floats:
        """P(K <= low - 1 + i) for i = 0 .. n + 1: starts at 0 and ends at 1."""
        scale = 1 << self.bits
        return np.array([0.0, *(t / scale for t in self.thresholds), 1.0])

    @cached_property
    def integers(self) -> list[int]:
        """Probability of each value of K in units of 2^-bits."""
        padded = [0, *self.thresholds, 1 << self.bits]
        return [b - a for a, b in pairwise(padded)]

    @cached_property
    def pmf(self) -> Floats:
        return np.array([p / (1 << self.bits) for p in self.integers])


def production() -> Table:
    return Table(gumbel.LOW, gumbel.BITS, gumbel.THRESHOLDS)


def small_table(gamma: float, low: int, high: int, bits: int) -> Table:
    """A table like G64 for another gamma, thresholds low .. high - 1."""
    with mpmath.workprec(200):
        return Table(
            low,
            bits,
            tuple(int(mpmath.nint(mpmath.exp(-mpmath.exp(-gamma * k)) * 2**bits)) for k in range(low, high)),
        )


def law(scores: Sequence[int], a: int, table: Table) -> Floats:
    """P(position q is selected) of the implemented mechanism, float64 of shape (n,); the lowest position wins
    ties."""
    g, n, top = 1 << a, len(scores), len(table.pmf)
    u = np.array(scores, dtype=np.int64)
    nodes = np.arange(table.low, table.low + top + 1, dtype=np.int64) * g
    edges = np.unique((u[:, None] + nodes[None, :]).ravel())
    starts, lengths = edges[:-1], np.diff(edges)
    index = (starts[None, :] - u[:, None]) // g - table.low  # of K + its dither, at the start of the segment
    offset = (starts[None, :] - u[:, None]) % g
    inside = (index >= 0) & (index < top)
    clipped = np.clip(index, 0, top - 1)
    pmf = np.where(inside, table.pmf[clipped], 0.0)
    below = np.where(index < 0, 0.0, np.where(index >= top, 1.0, table.cdf[clipped]))
    powers = _power_sums(lengths.astype(np.float64), n)
    out = np.zeros(n)
    for q in range(n):
        polynomial = [pmf[q] / g]
        for p in range(n):
            if p == q:
                continue
            constant = below[p] + pmf[p] * (offset[p] + (1 if p > q else 0)) / g
            polynomial = _times(polynomial, constant, pmf[p] / g)
        out[q] = sum(float((c * s).sum()) for c, s in zip(polynomial, powers, strict=True))
    return out


def _times(polynomial: list[Floats], constant: Floats, slope: Floats) -> list[Floats]:
    """The polynomial (coefficients from the constant up) times constant + slope x."""
    out = [c * constant for c in polynomial] + [np.zeros_like(constant)]
    for i, c in enumerate(polynomial):
        out[i + 1] = out[i + 1] + c * slope
    return out


def _power_sums(length: Floats, n: int) -> list[Floats]:
    """sum_{x < length} x^i for i = 0 .. n - 1 (n <= 4)."""
    m = length
    sums = [m, m * (m - 1) / 2, (m - 1) * m * (2 * m - 1) / 6, (m * (m - 1) / 2) ** 2]
    return sums[:n]


def enumerated(scores: Sequence[int], a: int, table: Table) -> list[Fraction]:
    """The same probabilities, exactly, by summing over every value of the winner's key."""
    g, n = 1 << a, len(scores)
    low = min(scores) + table.low * g
    high = max(scores) + (table.low + len(table.integers)) * g
    pmf = np.zeros((n, high - low), dtype=object)
    for p, score in enumerate(scores):
        for i, weight in enumerate(table.integers):
            start = score + (table.low + i) * g - low
            pmf[p, start : start + g] = weight
    upto = np.cumsum(pmf, axis=1, dtype=object)
    out = []
    for q in range(n):
        term = pmf[q]
        for p in range(n):
            if p != q:
                term = term * (upto[p] if p > q else upto[p] - pmf[p])
        out.append(Fraction(int(term.sum()), (g << table.bits) ** n))
    return out


def exhaustive(scores: Sequence[int], a: int, table: Table, select: Select) -> list[Fraction]:
    """Frequencies of `select(scores, U, V)` over all random bits of a tiny table."""
    n = len(scores)
    counts = [0] * n
    for uniforms in product(range(1 << table.bits), repeat=n):
        for dithers in product(range(1 << a), repeat=n):
            counts[select(scores, uniforms, dithers)] += 1
    return [Fraction(c, (1 << table.bits + a) ** n) for c in counts]


def grid_law(values: Sequence[int], order: Sequence[int], gamma: float) -> Floats:
    """Closed form of "score on the grid plus ideal discrete Gumbel", ties to the earlier in `order`:
    (1/gamma) ln(C_q / C_{q-1}), C_q = e^gamma (sum of x up to q) + (sum of x after q), x = exp(gamma value).
    """
    x = np.exp(gamma * (np.array(values, dtype=np.float64) - max(values)))
    out = np.zeros(len(values))
    before = 0.0
    total = float(x.sum())
    for q in order:
        previous = total + np.expm1(gamma) * before
        out[q] = np.log1p(np.expm1(gamma) * x[q] / previous) / gamma
        before += x[q]
    return out


def dithered_grid_law(scores: Sequence[int], a: int, gamma: float) -> Floats:
    """The ideal law by the dither lemma: the mean over z of grid laws on A = (u + V - z) / g, ties by z, then
    position."""
    g, n = 1 << a, len(scores)
    total = np.zeros(n)
    for z in product(range(g), repeat=n):
        values = [-((zi - u) // g) for u, zi in zip(scores, z, strict=True)]  # ceil((u - z) / g)
        order = sorted(range(n), key=lambda q: (-z[q], q))
        total += grid_law(values, order, gamma)
    return total / g**n


def exponential_mechanism(scores: Sequence[int], eta: float) -> Floats:
    """softmax(eta u)."""
    w = np.exp(eta * (np.array(scores, dtype=np.float64) - max(scores)))
    return w / w.sum()
