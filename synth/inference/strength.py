"""Cramer's V of two columns with an interval that holds near 0, where noise and the drawing of people pull it
upwards.

Problem: x^ estimates the counts of two columns (m, n), with covariance S: that of the noise (`read_off.py`)
and, for the people, N (diag p - p p') of who was drawn. With r, c the sums of its lines

    theta = sum_ij x_ij^2 / (r_i c_j) - 1,      V = sqrt(theta / k),  k = min(m, n) - 1

is 0 for independent columns, and there a quadratic form of what disturbs x^: theta^ = |G e|^2, G = (A x B)
scaled by 1 / sqrt(r_i c_j), A and B the centring by lines of `docs/design/judgement.md` 1. With C = G S G'
and g the gradient of theta, to second order near independence and to first far from it

    E theta^ = theta + tr C,      Var theta^ = 2 tr C^2 + 4 theta lambda,      lambda = max(g' S g / (4 theta^), tr C^2 / tr C)

theta^ / lambda is taken as a noncentral chi square with tr C / lambda degrees of freedom, which has this mean
and at least this variance: exact where all eigenvalues of C are alike, as those of the drawing of people are
near independence. S holds the people once as the counts have them and once as independence would: where a row is
expected in a cell and none was seen, the counts alone say that nothing varies there. The interval holds each
theta of which theta^ is neither too large nor too small by one of the two (`docs/design/inference.md` 5, 9).

Codes that hardly any row has (a count within so many standard errors of 0 by the noise) are left out, and
named: their lines would divide by noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from synth.inference.licence import Unanswerable, Uncertain
from synth.inference.moments import Array
from synth.inference.read_off import Estimate

MAX_PAIR_CELLS = 1024
"""Of both columns together: their covariance is written out."""


@dataclass(frozen=True)
class Strength:
    """V with its interval. noise, people: the standard error of V by either. left_out: codes of either
    column."""

    value: float
    low: float
    high: float
    noise: float
    people: float
    left_out: tuple[tuple[int, ...], tuple[int, ...]]


def strength(estimate: Estimate, rows: float, z: float, sure: float, *, of_people: bool) -> Strength:
    """V of the two columns of an estimate at full resolution. rows: about how many there are. z: critical
    normal deviate. sure: standard errors of a code's count from which on it takes part. of_people: with the
    drawing of people, not of these rows.

    Raises `Uncertain` if fewer than two codes of a column are clear.
    """
    shape = estimate.values.shape
    if estimate.values.size > MAX_PAIR_CELLS:
        raise Unanswerable(
            f"{' x '.join(estimate.names)} has {estimate.values.size:,} cells; Cramer's V is offered up to {MAX_PAIR_CELLS:,}."
        )
    covariance = np.stack(
        [estimate.solved(unit.reshape(shape)).reshape(-1) for unit in np.eye(estimate.values.size)]
    ).reshape(*shape, *shape)
    clear = _clear(estimate.values, covariance, sure)
    if min(map(len, clear)) < 2:
        raise Uncertain(
            f"By the measurements and their noise fewer than two values of {' or '.join(estimate.names)} may have any rows."
        )
    left_out = tuple(
        tuple(code for code in range(size) if code not in set(some.tolist()))
        for size, some in zip(shape, clear, strict=True)
    )
    x = estimate.values[np.ix_(*clear)]
    noise = covariance[np.ix_(*clear, *clear)].reshape(x.size, x.size)
    return _interval(x, noise, rows if of_people else 0.0, z, (left_out[0], left_out[1]))


def _clear(values: Array, covariance: NDArray[np.float64], sure: float) -> tuple[NDArray[np.intp], ...]:
    """The codes of either column whose counts are clear, also without those of the other column that are not:
    what a line has left among these may be below 0."""
    clear: tuple[NDArray[np.intp], ...] = tuple(map(np.arange, values.shape))
    while True:
        x, of = values[np.ix_(*clear)], covariance[np.ix_(*clear, *clear)]
        kept = tuple(
            codes[x.sum(axis=1 - axis) > sure * np.sqrt(np.diag(of.sum(axis=(1 - axis, 3 - axis))))]
            for axis, codes in enumerate(clear)
        )
        if min(map(len, kept)) == 0 or all(map(np.array_equal, kept, clear)):
            return kept
        clear = kept


def _interval(
    x: Array, noise: Array, rows: float, z: float, left_out: tuple[tuple[int, ...], tuple[int, ...]]
) -> Strength:
    """rows: people that were drawn; 0 for these rows alone."""
    lines, columns = x.sum(1), x.sum(0)
    expected = np.outer(lines, columns)
    theta = float((np.square(x) / expected).sum()) - 1.0
    k = min(x.shape) - 1
    scale = 1.0 / np.sqrt(expected.reshape(-1))
    centring = scale[:, None] * np.kron(_centred(lines), _centred(columns))
    slope = (
        2 * x / expected
        - (np.square(x) / expected).sum(1, keepdims=True) / lines[:, None]
        - (np.square(x) / expected).sum(0, keepdims=True) / columns[None, :]
    ).reshape(-1)
    by_noise = max(0.0, float(slope @ noise @ slope))  # rounding may leave less
    tail, limits, told = 1 - NormalDist().cdf(z), list[tuple[float, float]](), list[tuple[float, float]]()
    for counts in (
        x,
        expected,
    ):  # where a cell of few happens to be empty, what is seen spreads less than chance does
        share = np.maximum(counts, 0.0).reshape(-1)
        share = share / share.sum()
        people = rows * (np.diag(share) - np.outer(share, share))
        spread = centring @ (noise + people) @ centring.T
        first, second = float(np.trace(spread)), float(np.square(spread).sum())
        by_people = max(0.0, float(slope @ people @ slope))
        steep = max(
            (by_noise + by_people) / (4 * theta) if theta > 0 else 0.0, second / first if first > 0 else 0.0
        )
        limits.append((_limit(theta, first, steep, 1 - tail), _limit(theta, first, steep, tail)))
        told.append((first, by_people))
    low, high = min(low for low, _ in limits), max(high for _, high in limits)
    first, by_people = told[0]
    value = max(0.0, theta - first)
    error = 2 * math.sqrt(max(value, first) * k)  # of V = sqrt(theta / k)
    return Strength(
        min(1.0, math.sqrt(value / k)),
        min(1.0, math.sqrt(low / k)),
        min(1.0, math.sqrt(high / k)),
        math.sqrt(by_noise) / error if error > 0 else 0.0,
        math.sqrt(by_people) / error if error > 0 else 0.0,
        left_out,
    )


def _limit(seen: float, first: float, steep: float, below: float) -> float:
    """The theta of which what is seen is the quantile of that order; 0 if it is below that of every theta."""
    from scipy.special import chndtr  # only who asks for V waits for it

    def chance(theta: float) -> float:
        return float(chndtr(seen / steep, first / steep, theta / steep))

    if seen <= 0 or first <= 0:
        return max(0.0, seen)
    if chance(0.0) <= below:
        return 0.0
    lower, upper = 0.0, 2 * seen + 8 * steep
    while chance(upper) > below:
        upper *= 2
    for _ in range(60):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if chance(middle) > below else (lower, middle)
    return (lower + upper) / 2


def _centred(lines: Array) -> Array:
    """I - p 1' of the shares of lines."""
    return np.eye(len(lines)) - np.outer(lines / lines.sum(), np.ones(len(lines)))
