"""Tail probabilities for decisions at 1e-7 and below: chi-square, binomial, Clopper-Pearson bounds, exact
tests.

Sources: Press et al., Numerical Recipes, 6.2 (incomplete gamma); Clopper, Pearson 1934.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_STEPS = 10_000
_EXACT = 1e-14


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(X >= statistic) of a chi-square variable with so many degrees of freedom."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:  # a series for the lower part
        term = total = 1 / a
        for step in range(1, _STEPS):
            term *= x / (a + step)
            total += term
            if term < total * _EXACT:
                break
        return max(0.0, 1 - scale * total)
    b, c = x + 1 - a, 1e300  # a continued fraction for the upper one
    d = 1 / b
    fraction = d
    for step in range(1, _STEPS):
        part = -step * (step - a)
        b += 2
        d = 1 / (part * d + b)
        c = b + part / c
        fraction *= d * c
        if abs(d * c - 1) < _EXACT:
            break
    return scale * fraction


def goodness_of_fit(
    observed: Sequence[int], expected: Sequence[float], least: float = 50.0
) -> tuple[float, int, float]:
    """Pearson's statistic, degrees of freedom and p-value; neighbouring cells are merged until each is
    expected `least` times."""
    cells: list[list[float]] = []
    filled = [0.0, 0.0]
    for count, mean in zip(observed, expected, strict=True):
        filled = [filled[0] + count, filled[1] + mean]
        if filled[1] >= least:
            cells.append(filled)
            filled = [0.0, 0.0]
    if cells:
        cells[-1] = [cells[-1][0] + filled[0], cells[-1][1] + filled[1]]
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    freedom = len(cells) - 1
    return statistic, freedom, chi_square_tail(statistic, freedom) if freedom > 0 else 1.0


def exact_multinomial(observed: Sequence[int], law: Sequence[float]) -> float:
    """p-value of three counts: the chance of counts that are no more likely. Takes time in proportion to
    their sum squared."""
    n = sum(observed)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = first + second <= n
    first, second = first[possible], second[possible]
    third = n - first - second
    logs = factorials[n] - factorials[first] - factorials[second] - factorials[third]
    for counts, probability in zip((first, second, third), law, strict=True):
        logs += counts * math.log(probability)
    here = logs[(first == observed[0]) & (second == observed[1])][0]
    return float(min(1.0, np.exp(logs[logs <= here + 1e-9]).sum()))


def normal_tail(z: float) -> float:
    """P(Z >= z) of a standard normal variable."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_tail(-middle) < p else (low, middle)
    return (low + high) / 2


def binomial_tail(successes: int, trials: int, p: float) -> float:
    """P(X >= successes) of a binomial variable."""
    if successes <= 0:
        return 1.0
    if p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    term = math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(trials - successes + 1)
        + successes * math.log(p)
        + (trials - successes) * math.log1p(-p)
    )
    if successes < p * trials:  # sum the shorter side
        below, count = 0.0, successes - 1
        step = term * successes * (1 - p) / ((trials - successes + 1) * p)
        while count >= 0 and step > 0:
            below += step
            step *= count * (1 - p) / ((trials - count + 1) * p)
            count -= 1
        return max(0.0, 1 - below)
    total, count = 0.0, successes
    while count <= trials and term > total * _EXACT:
        total += term
        term *= (trials - count) * p / ((count + 1) * (1 - p))
        count += 1
    return total


def at_least(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: a probability that the true one falls below with a chance of at most alpha."""
    low, high = 0.0, successes / trials
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(successes, trials, middle) < alpha else (low, middle)
    return low


def at_most(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: a probability that the true one exceeds with a chance of at most alpha."""
    return 1 - at_least(trials - successes, trials, alpha)


def gaussian_at_least(most_false: float, least_hits: float) -> float:
    """The mu that a Gaussian mechanism needs for a test with at most these false alarms and at least these
    hits."""
    if not 0 < most_false < 1 or not 0 < least_hits < 1:
        return 0.0
    return normal_quantile(1 - most_false) - normal_quantile(1 - least_hits)


def zcdp_at_least(most_false: float, least_hits: float) -> float:
    """The rho that any mechanism needs for such a test, whose Rényi divergence of order a must not exceed rho
    a."""
    if not 0 < most_false < least_hits < 1:
        return 0.0
    best = 0.0
    for step in range(1, 400):
        order = 1 + step / 10
        terms = (
            order * math.log(hits) + (1 - order) * math.log(false)
            for hits, false in ((least_hits, most_false), (1 - least_hits, 1 - most_false))
        )
        best = max(best, math.log(sum(map(math.exp, terms))) / (order - 1) / order)
    return best
