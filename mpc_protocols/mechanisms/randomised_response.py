"""Randomised response: a code of k values is told as it is with probability P, else as one of the others
(Warner 1965).

    keep     P = numerator / 2^64        any other value     Q = (1 - P) / (k - 1)

Two people whose codes differ tell distributions of Rényi divergence

    D_a = ln(P^a Q^(1-a) + Q^a P^(1-a) + (k - 2) Q) / (a - 1)

so a response is rho-zCDP with rho = sup_a D_a / a, below x^2 / 2 for x = ln(P / Q). `Response.rho` is a
certified upper bound of it: D_a does not fall in a, so on a grid 1 = a_0 < .. < a_J nothing exceeds the
largest D_{a_{j+1}} / a_j, and beyond a_J nothing exceeds x / a_J (`docs/design/mechanisms.md` 7). P is
charged as it is drawn: the fraction, not e^x.

Adjacency is "replace": one person's code changes. The response hides nothing about who is in the data. Coins
come from the caller; outside tests and simulations they are the operating system's. Drawing is exact, so beta
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.errors import StudyInvalid

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS: Final = 64
MAX_VALUES: Final = 256
GRID: Final = 64
"""An order of the grid is (1 + 1/GRID) times the one before: the bound is that much above the supremum, at
most."""
MIN_RHO, MAX_RHO = Fraction(1, 2**40), Fraction(2**10)
_DIGITS = 40
_KEPT = 17
_BISECTIONS = 14


@dataclass(frozen=True)
class Response:
    """A response of `values` values that is kept with probability numerator / 2^64. Raises `ValueError`: a
    probability that is not above that of any other value, or a number of values outside 2..256."""

    values: int
    numerator: int

    def __post_init__(self) -> None:
        if not 2 <= self.values <= MAX_VALUES:
            raise ValueError(f"A response has 2 to {MAX_VALUES} values, not {self.values}.")
        if not (1 << BITS) / self.values < self.numerator < 1 << BITS:
            raise ValueError(
                "A response must be kept more often than it becomes any other value, and not always."
            )

    @classmethod
    def at(cls, values: int, rho: Fraction) -> Response:
        """The response that is kept most often (to some thousandth of x) at a certified cost of at most rho;
        the same at every party. Raises `StudyInvalid` for a rho beyond what can be drawn."""
        return _at(values, rho)

    @property
    def keep(self) -> Fraction:
        """P."""
        return Fraction(self.numerator, 1 << BITS)

    @property
    def other(self) -> Fraction:
        """Q."""
        return (1 - self.keep) / (self.values - 1)

    @property
    def rho(self) -> Fraction:
        """The certified zCDP cost of one response, rounded up."""
        return certified(self, GRID)

    def perturb(self, codes: NDArray[Any], randomness: Callable[[int], bytes]) -> NDArray[np.uint8]:
        """A response for each code: uint8 of the same shape (n,). randomness: uniform bytes, of which it
        takes a number that does not depend on the codes."""
        true = codes.astype(np.uint8)
        kept = np.frombuffer(randomness(8 * len(true)), "<u8") < np.uint64(self.numerator)
        other = _uniform(self.values - 1, len(true), randomness)
        return np.where(kept, true, other + (other >= true)).astype(np.uint8)


def unmixed(counts: NDArray[Any], responses: Sequence[Response]) -> NDArray[np.float64]:
    """The unbiased estimate of the true counts from those of responses: float64 of the same shape, one axis a
    response.

    Per axis (c - Q sum c) / (P - Q): the inverse of the transition matrix, which is never built.
    """
    found = counts.astype(np.float64)
    for axis, response in enumerate(responses):
        keep, other = float(response.keep), float(response.other)
        found = (found - other * found.sum(axis=axis, keepdims=True)) / (keep - other)
    return found


def cell_variance(rows: int, responses: Sequence[Response]) -> float:
    """About the variance of one cell of `unmixed`, for counts of `rows` rows that are spread over the cells:
    what is told is nearly uniform where little is spent."""
    variance = float(rows)
    for response in responses:
        gap = float(response.keep - response.other)
        variance *= (1 - 1 / response.values) / response.values / gap**2
    return variance


@lru_cache(maxsize=256)
def certified(response: Response, grid: int) -> Fraction:
    """The upper bound of sup_a D_a / a on a grid of ratio 1 + 1/grid, rounded up."""
    with localcontext(prec=_DIGITS):
        keep, other = (
            Decimal(of.numerator) / Decimal(of.denominator) for of in (response.keep, response.other)
        )
        ln_keep, ln_other, rest = keep.ln(), other.ln(), (response.values - 2) * other
        order, best, step = Decimal(1), Decimal(0), 1 + Decimal(1) / grid
        while True:
            following = order * step
            up = (following * ln_keep + (1 - following) * ln_other).exp()
            down = (following * ln_other + (1 - following) * ln_keep).exp()
            best = max(best, (up + down + rest).ln() / (following - 1) / order)
            order = following
            if (ln_keep - ln_other) / order <= best:
                break
        best *= 1 + Decimal(10) ** -20
    return Fraction(Context(prec=_KEPT, rounding=ROUND_CEILING).plus(best))


@lru_cache(maxsize=256)
def _at(values: int, rho: Fraction) -> Response:
    if not MIN_RHO <= rho <= MAX_RHO:
        raise StudyInvalid(f"A randomised response cannot be drawn for a rho of {float(rho):.3g}.")
    with localcontext(prec=_DIGITS):
        low = Decimal(0)
        high = 2 * (2 * Decimal(rho.numerator) / Decimal(rho.denominator)).sqrt()
        while high < _DIGITS and certified(_of(values, high), GRID) <= rho:
            low, high = high, 2 * high
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if certified(_of(values, middle), GRID) <= rho:
                low = middle
            else:
                high = middle
        return _of(values, low)


def _of(values: int, x: Decimal) -> Response:
    """The response of ln(P / Q) = x, rounded down."""
    odds = x.exp()
    return Response(values, int(min((1 << BITS) * odds / (odds + values - 1), Decimal((1 << BITS) - 1))))


def _uniform(bound: int, count: int, randomness: Callable[[int], bytes]) -> NDArray[np.uint8]:
    """So many uniform integers below the bound: bytes beyond its last multiple are drawn again."""
    if bound == 1:
        return np.zeros(count, np.uint8)
    limit = 256 - 256 % bound
    drawn = np.frombuffer(randomness(count), np.uint8).copy()
    while len(again := np.flatnonzero(drawn >= limit)):
        drawn[again] = np.frombuffer(randomness(len(again)), np.uint8)
    return drawn % np.uint8(bound)
