"""A second accountant: Rényi divergences computed number by number, not by the formulas that the build
charges by.

Problem: what does a release really cost? For each order a > 1 the divergence between the outputs on two worst
neighbours is summed up numerically, orders by themselves, and converted to epsilon at a delta:

    noise      sum over the integers of P^a Q^(1-a), P and Q discrete Gaussians that lie s apart (Canonne, Kamath, Steinke 2020)
    selection  two outcomes whose likelihood ratios differ by e^eps', the worst pair of a mechanism of bounded range eps'
               (Dong, Durfee, Rogers 2020), by a search over where the range lies
    response   two outcomes, or one and the others, by their probabilities
    training   an integral of powers of the likelihood ratio of a mixture, noise about a sample, over a grid
    epsilon    min over a of  RDP(a) + ln((a - 1) / a) - (ln delta + ln a) / (a - 1)        (Canonne, Kamath, Steinke 2020)

Floating point, good to nine digits: it judges by margins far above. Nothing here is shared with
`synth.budget.accounting`, nor with the plans in `mpc_protocols/mechanisms`. Noise of more than `MAX_NOISE`
has the divergence of the continuous Gaussian to all digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from mpc_protocols.functionality import Event
from synth.algorithm import CHOICES, OWN_MODEL

ORDERS = (
    1.01,
    1.05,
    1.1,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    6.0,
    8.0,
    12.0,
    16.0,
    24.0,
    32.0,
    48.0,
    64.0,
    96.0,
    128.0,
    256.0,
    512.0,
    2048.0,
)
MAX_NOISE = 300.0
_SMALL = 0.05
"""Up to such a divergence of noise its sum is taken less 1, so that all its digits are kept."""
_TAILS = 14.0
_GRID = 400
_REFINED, _ZOOMS = 40, 3


@lru_cache(maxsize=4096)
def noise(sigma2: float, shift: int, order: float) -> float:
    """Divergence of order a between discrete Gaussians of this parameter that lie `shift` apart."""
    if sigma2 > MAX_NOISE**2:
        return order * shift**2 / (2 * sigma2)
    # the integrand's mode lies a shifts away
    reach = math.ceil(_TAILS * math.sqrt(sigma2)) + math.ceil(abs(shift) * (order + 1))
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    at, shifted = -(x**2) / (2 * sigma2), -((x - shift) ** 2) / (2 * sigma2)
    normaliser = _log_sum(at)
    if (power := order * shift**2 / (2 * sigma2)) > _SMALL:
        return float((_log_sum(order * shifted + (1 - order) * at) - normaliser) / (order - 1))
    # the sum less 1, of x and -x together: at orders near 1 its logarithm would be a difference of two that
    # are all but equal
    more = 2 * np.exp(-power) * np.sinh(order * shift * x / (2 * sigma2)) ** 2 + math.expm1(-power)
    return math.log1p(float((np.exp(at - normaliser) * more).sum())) / (order - 1)


@lru_cache(maxsize=4096)
def bounded_range(epsilon: float, order: float) -> float:
    """Divergence of order a of the worst mechanism whose log-likelihood ratios lie within an interval of this
    length."""
    t = np.linspace(0, epsilon, _GRID + 1)[1:-1]
    if order * epsilon < 1:  # as in `noise`
        mass, other = np.expm1(epsilon - t), np.exp(epsilon - t) * np.expm1(t)
        more = (mass * np.expm1(order * t) + other * np.expm1(order * (t - epsilon))) / math.expm1(epsilon)
        return float(np.log1p(more).max() / (order - 1))
    mass = (np.exp(-t) - math.exp(-epsilon)) / -math.expm1(-epsilon)
    with np.errstate(divide="ignore"):
        terms = np.stack([np.log(mass) + order * t, np.log1p(-mass) + order * (t - epsilon)])
    peak = terms.max(axis=0)
    return float(((peak + np.log(np.exp(terms - peak).sum(axis=0))) / (order - 1)).max())


@lru_cache(maxsize=4096)
def response(values: int, keep: float, order: float) -> float:
    """Divergence of order a of a code of so many values that is told as it is with probability `keep`, else
    as another one, all alike."""
    other = (1 - keep) / (values - 1)
    ratio = math.log(keep / other)
    if order * ratio < 1:  # as in `noise`
        more = other * math.expm1(order * ratio) + keep * math.expm1(-order * ratio)
        return math.log1p(more) / (order - 1)
    terms = [math.log(other) + order * ratio, math.log(keep) - order * ratio]
    if values > 2:
        terms.append(math.log((values - 2) * other))
    return _log_sum(np.array(terms)) / (order - 1)


@lru_cache(maxsize=4096)
def sampled(noise2: float, rate: float, order: float) -> float:
    """Divergence of order a of a Gaussian about a Poisson sample, one row moving it by 1: the larger of both
    directions.

    An integral on a grid of an eighth of the noise, over all that weighs anything.
    """
    sigma = math.sqrt(noise2)
    step = sigma / 8
    x = np.arange(-_TAILS * sigma - order, _TAILS * sigma + order + 1, step)
    at = -(x**2) / (2 * noise2) - math.log(sigma * math.sqrt(2 * math.pi)) + math.log(step)
    mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * noise2))
    return max(_log_sum(at + order * mixed), _log_sum(at + (1 - order) * mixed)) / (order - 1)


def divergence(event: Mapping[str, Any], order: float, moves: int, unit_rows: int) -> float:
    """Of one event as run.json has it, completed by its plan (`synth.algorithm.Algorithm.completed`). moves:
    cells of a marginal that one changed row moves.

    Raises `ValueError` for a kind of event that it does not know.
    """
    what = event["what"]
    if what == "select":
        # the grid's own part of the range is on top; it is compared, not trusted
        least = event["sensitivity"] / (32 * (1 << event["a"]))
        return bounded_range(max(least, float(event["epsilon"])), order)
    if what == "train":
        noise2 = float(Fraction(event["noise2"]))
        if "rate" in event:
            return float(event["steps"] * sampled(noise2, float(Fraction(event["rate"])), order))
        return float(event["exposures"] * len(event["owners"]) * order * moves**2 / (2 * noise2))
    if what == CHOICES:
        return bounded_range(float(Fraction(event["epsilon"])), order)
    if what == OWN_MODEL:  # an owner's own word: a budget that nobody else has seen spent
        return float(order * event["budget"])
    if what == "responses":
        told = zip(event["values"], event["keep"], strict=True)
        return sum(response(values, float(Fraction(keep)), order) for values, keep in told)
    if what == "label":
        return response(2, 1 - float(Fraction(event["flip"].replace("2^64", str(1 << 64)))), order)
    texts = event["sigma2"]
    if what == "sizes":  # where nobody is asked there is no noise
        return noise(float(Fraction(texts)), unit_rows, order) if Fraction(texts) else 0.0
    if what == "label-rate":
        return moves * noise(float(Fraction(texts)), unit_rows, order)
    if what == "total":
        return noise(float(Fraction(texts)), unit_rows, order)
    count = len(event["cliques"])
    variances = [texts] * count if isinstance(texts, str) else texts
    if what in ("measure", "sum"):
        return sum(moves * noise(float(Fraction(text)), unit_rows, order) for text in variances)
    if what == "distances":
        return sum(noise(float(Fraction(text)), moves * unit_rows, order) for text in variances)
    raise ValueError(f"The accountant knows no release called {what!r}.")


def as_json(event: Event) -> dict[str, Any]:
    """An event as run.json has it."""
    return {"what": event.what, "rho": float(event.rho), **event.detail}


def rho(event: Mapping[str, Any], moves: int, unit_rows: int) -> float:
    """The least rho whose line a rho lies above the divergence at all orders tried."""
    return max(divergence(event, order, moves, unit_rows) / order for order in ORDERS)


def has_no_rho(event: Mapping[str, Any]) -> bool:
    """Whether it is charged by the divergence of each order, with none of its cost in its rho: a training on
    sampled rows."""
    return event["what"] == "train" and "rate" in event


def epsilon(events: Iterable[Mapping[str, Any]], delta: float, moves: int, unit_rows: int) -> float:
    """The least epsilon that all events together have at this delta: the best of ORDERS, and a search around
    it."""
    listed = list(events)

    def at(order: float) -> float:
        return converted(sum(divergence(event, order, moves, unit_rows) for event in listed), order, delta)

    orders = list(ORDERS)
    for _ in range(_ZOOMS):  # a run that spends all of rho is compared to nine digits
        best = min(range(len(orders)), key=lambda number: at(orders[number]))
        low, high = orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)]
        orders = [float(order) for order in np.geomspace(low, high, _REFINED)]
    return min(map(at, orders))


def countable(epsilon: float, delta: float, beta: float) -> float:
    """The epsilon at which a promise is kept by samplers that are beta from their distributions: the promised
    one, or the smaller one at which (1 + e^epsilon) beta is half of delta (`docs/design/privacy.md` 3). At
    most 0 if there is none."""
    if beta == 0:
        return epsilon
    odds = delta / (2 * beta) - 1
    return min(epsilon, math.log(odds)) if odds > 0 else 0.0


def converted(divergence: float, order: float, delta: float) -> float:
    """Epsilon at delta of a divergence of one order."""
    return max(0.0, divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Epsilon at delta of rho-zCDP: by a fine grid of orders."""
    grid = 1 + np.exp(np.linspace(-14, 25, 20_001))
    values = rho * grid + np.log1p(-1 / grid) - (math.log(delta) + np.log(grid)) / (grid - 1)
    return max(0.0, float(values.min()))


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of a continuous Gaussian mechanism of this rho at epsilon (Balle, Wang 2018): no claim
    may be below."""
    mu = math.sqrt(2 * rho)
    return _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _log_sum(values: Any) -> float:
    peak = float(values.max())
    return peak + math.log(float(np.exp(values - peak).sum()))
