"""What many Gaussian releases about a Poisson sample each cost: a curve of Rényi divergences, not a rho.

Each step takes every row with probability q, independently and unseen, and releases a sum that one row moves
by at most 1 in L2, plus noise of parameter sigma^2. At an integer order a, one step's divergence between
neighbours under add-remove is

    ln( sum_k C(a, k) (1 - q)^(a - k) q^k e^(k (k - 1) / (2 sigma^2)) ) / (a - 1)

(Mironov, Talwar, Zhang 2019, section 3.3; the same bound holds in both directions), and steps add up. The
noise here is the DISCRETE Gaussian and the sum integer: at integer orders its moments are exactly those of
the continuous one, so the formula holds unchanged (`docs/design/vertigan.md`). That is why only integer
orders are used.

Decimal arithmetic, rounded up, alike on every machine: parties must find the same noise. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Event

ORDERS: Final = range(2, 513)
MIN_SIGMA: Final = Fraction(1, 4)
TRAIN: Final = "train"
"""The kind of event that holds the releases of a training."""
_CONTEXT = Context(prec=40, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SAFETY = Decimal(1) + Decimal(10) ** -25  # far above the rounding of a sum of 513 terms of 40 digits


@dataclass(frozen=True)
class SampledGaussian:
    """So many steps. sigma2: of the noise, the sum's sensitivity being 1. rate: q. Raises `StudyInvalid`."""

    sigma2: Fraction
    rate: Fraction
    steps: int

    def __post_init__(self) -> None:
        if not (self.sigma2 >= MIN_SIGMA**2 and 0 < self.rate <= 1 and self.steps >= 1):
            raise StudyInvalid(
                f"A sampled Gaussian needs a noise of at least {float(MIN_SIGMA)}, a rate above 0 and at most 1 and a step or "
                f"more, got {float(self.sigma2) ** 0.5:.3g}, {float(self.rate):.3g} and {self.steps}; no noise, no privacy."
            )

    def divergence(self, order: int) -> Decimal:
        """Of all steps at an integer order of at least 2, rounded up."""
        with localcontext(_CONTEXT):
            return self.steps * _step(self.sigma2, self.rate, order)

    def facts(self) -> dict[str, object]:
        """For an event's detail; `curve_of` reads it."""
        return {"noise2": str(self.sigma2), "rate": str(self.rate), "steps": self.steps}

    def to_text(self) -> str:
        """For a ledger's file; `from_text` reads it."""
        return f"{self.sigma2} {self.rate} {self.steps}"

    @classmethod
    def from_text(cls, text: str) -> SampledGaussian:
        """Inverse of `to_text`. Raises `ValueError`."""
        sigma2, rate, steps = text.split()
        return cls(Fraction(sigma2), Fraction(rate), int(steps))


def curve_of(event: Event) -> SampledGaussian | None:
    """The curve that an event of a training costs; None of any other event. Raises `StudyInvalid` for one
    that cannot be read."""
    detail: Mapping[str, object] = event.detail
    if event.what != TRAIN or "rate" not in detail:
        return None
    try:
        return SampledGaussian.from_text(f"{detail['noise2']} {detail['rate']} {detail['steps']}")
    except (KeyError, ValueError, ZeroDivisionError):
        raise StudyInvalid("A training on record does not say its noise, rate and steps.") from None


@lru_cache(maxsize=1 << 14)
def _step(sigma2: Fraction, rate: Fraction, order: int) -> Decimal:
    with localcontext(_CONTEXT):
        noise = Decimal(sigma2.numerator) / Decimal(sigma2.denominator)
        if rate == 1:
            return order / (2 * noise) * _SAFETY
        q = Decimal(rate.numerator) / Decimal(rate.denominator)
        growth, power, odds = (1 / noise).exp(), Decimal(1), q / (1 - q)
        term = total = (1 - q) ** order
        for k in range(order):  # from k to k + 1 of those taken
            term = term * odds * power * (order - k) / (k + 1)
            total += term
            power *= growth
        return total.ln() / (order - 1) * _SAFETY + Decimal(10) ** -30
