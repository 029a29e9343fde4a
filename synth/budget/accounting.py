"""Privacy accounting: zCDP inside a run, (epsilon, delta) outside it, and the guard that refuses to go over.

Every mechanism of a run is charged in zero-concentrated DP (Bun-Steinke 2016): rho adds up, also when the
mechanisms are chosen adaptively from public outputs, as long as each step is checked against the cap before
it is opened (a zCDP filter: `docs/design/mechanisms.md` 4). The study's (epsilon, delta) becomes the cap by
the exact conversion of Canonne-Kamath-Steinke 2020, less what samplers of finite precision take of delta
(`calibrate`); beta is filtered like rho. Formulas and proofs: `docs/design/privacy.md` 3. A custodian's cap
over many runs leaves the same room (`parties.budget.account`).

All of it is decimal arithmetic with 60 digits, rounded in the safe direction, which every machine does alike:
the parties must find the same cap (`math.log` may differ in the last digit between C libraries). PRG security
(AES-CTR) stands beside this.

Adjacency does not appear here: it changes sensitivities, hence the events' rho, where the mechanisms are
planned. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Event, Guard
from synth.budget.sampled_gaussian import ORDERS, SampledGaussian, curve_of

_Number = TypeVar("_Number", float, Decimal)

_DIGITS = 60
_SEARCHED = 22  # digits while the best order is searched for
_KEPT = 17  # significant decimal digits of a converted number, after rounding to the safe side
_MAX_EPSILON = 1e5  # an epsilon that e^epsilon beta exceeds every delta at
_ATTEMPTS = 200
_REMEMBERED = 1024  # conversions, of 2 ms each: a run asks for few numbers again and again


def rho_of(epsilon: float | Fraction, delta: float | Fraction) -> Fraction:
    """The largest rho (rounded down) for which rho-zCDP implies (epsilon, delta)-DP. Raises `StudyInvalid`."""
    _check(epsilon, delta)
    return _rho_of(Fraction(epsilon), Fraction(delta))


@lru_cache(maxsize=_REMEMBERED)
def _rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    with localcontext(prec=_SEARCHED):
        eps, log_delta = _decimal(epsilon), _decimal(delta).ln()
        a = _best(lambda a: (_penalty(a, log_delta) - eps) / a)
    with localcontext(prec=_DIGITS):
        rho = (_decimal(epsilon) - _penalty(a, _decimal(delta).ln())) / a
    return Fraction(max(_rounded(rho, ROUND_FLOOR), Decimal(0)))


def epsilon_of(rho: float | Fraction, delta: float | Fraction) -> float:
    """The least epsilon (rounded up) that rho-zCDP gives at this delta; 0 if rho is 0. Raises `StudyInvalid`."""
    if not rho >= 0 or rho == math.inf:
        raise StudyInvalid(f"rho must be a finite number of at least 0, got {rho!r}.")
    _check(1.0, delta)
    return _epsilon_of(Fraction(rho), Fraction(delta)) if rho else 0.0


@lru_cache(maxsize=_REMEMBERED)
def _epsilon_of(rho: Fraction, delta: Fraction) -> float:
    with localcontext(prec=_SEARCHED):
        exact, log_delta = _decimal(rho), _decimal(delta).ln()
        a = _best(lambda a: a * exact + _penalty(a, log_delta))
    with localcontext(prec=_DIGITS):
        epsilon = a * _decimal(rho) + _penalty(a, _decimal(delta).ln())
    return math.nextafter(float(max(_rounded(epsilon, ROUND_CEILING), Decimal(0))), math.inf)


def epsilon_about(rho: float, delta: float) -> float:
    """`epsilon_of` of rho > 0 in floating point: good to nine digits and 200 times as fast, to be shown,
    never to decide by."""
    log_delta = math.log(delta)

    def cost(x: float) -> float:
        a = 1 + math.exp(x)
        return a * rho - (a * math.log1p(math.exp(-x)) + x + log_delta) / (a - 1)

    return max(0.0, cost(_least(cost, -36.0, 60.0, (math.sqrt(5) - 1) / 2)))


def _check(epsilon: float | Fraction, delta: float | Fraction) -> None:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
            raise StudyInvalid(f"[privacy] {name} must be a number, got {value!r}.")
    if not 0 < epsilon < math.inf:
        raise StudyInvalid(f"[privacy] epsilon must be a finite number above 0, got {epsilon}.")
    if not 0 < delta < 1:
        raise StudyInvalid(f"[privacy] delta must lie strictly between 0 and 1, got {delta}.")


def _best(cost: Callable[[Decimal], Decimal]) -> Decimal:
    """The order a > 1 that about minimises the cost: golden section on ln(a - 1), between e^-40 and e^60."""
    return (
        1 + _least(lambda x: cost(1 + x.exp()), Decimal(-40), Decimal(60), (Decimal(5).sqrt() - 1) / 2).exp()
    )


def _least(cost: Callable[[_Number], _Number], low: _Number, high: _Number, golden: _Number) -> _Number:
    """Where between low and high, some 100 apart, the cost is about least: golden section."""
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(60):  # to 3e-11, which the cost feels squared
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = cost(right)
    return (low + high) / 2


def _penalty(a: Decimal, log_delta: Decimal) -> Decimal:
    """(ln(1/delta) - ln(a - 1) + a ln(1 - 1/a)) / (a - 1): what epsilon exceeds a rho by."""
    return (_of_order(a) - log_delta) / (a - 1)


def _of_order(a: Decimal) -> Decimal:
    """The penalty's part that no delta enters: two logarithms, nearly all that it costs."""
    return a * ((a - 1) / a).ln() - (a - 1).ln()


@lru_cache(maxsize=len(ORDERS))
def _of_integer_order(order: int) -> Decimal:
    with localcontext(prec=_DIGITS):
        return _of_order(Decimal(order))


def _decimal(x: float | Fraction) -> Decimal:
    exact = Fraction(x)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def _rounded(x: Decimal, rounding: str) -> Decimal:
    """To `_KEPT` digits on the safe side; the 60-digit arithmetic before it errs far below the last of them."""
    safety = x.copy_abs().scaleb(-30)
    with localcontext(prec=_DIGITS):
        x = x - safety if rounding == ROUND_FLOOR else x + safety
    return Context(prec=_KEPT, rounding=rounding).plus(x)


@dataclass(frozen=True)
class Calibration:
    """The (epsilon, delta) that samplers of finite precision leave for zCDP: what rho is converted at.

    epsilon: the promised one, or less (`calibrate`). delta: what the samplers' statistical distances leave of
    the promised one.
    """

    epsilon: Fraction
    delta: Fraction

    @property
    def rho(self) -> Fraction:
        """The most that may be spent."""
        return rho_of(self.epsilon, self.delta)


def calibrate(epsilon: float | Fraction, delta: float | Fraction, beta: Fraction) -> Calibration | None:
    """What is left of (epsilon, delta) when the samplers take (1 + e^epsilon) beta of delta; None if they
    leave nothing.

    Where they would take more than half of delta, the calibration is to the smaller epsilon at which they
    take half: more epsilon would buy no accuracy that finite precision lets us account for. That epsilon is a
    stronger promise than the one asked for. Raises `StudyInvalid` for an epsilon or delta that is none.
    """
    _check(epsilon, delta)
    with localcontext(prec=_DIGITS):
        counted = _decimal(epsilon)
        if beta > 0:
            odds = _decimal(delta) / _decimal(beta) / 2 - 1
            if odds <= 1:  # at every epsilon above 0 they take more than half
                return None
            counted = min(counted, _rounded(odds.ln(), ROUND_FLOOR))
    left = Fraction(delta) - _loss(counted, beta)
    return Calibration(Fraction(counted), left) if counted > 0 and left > 0 else None


def epsilon_of_curves(
    rho: Fraction, curves: Sequence[SampledGaussian], delta: float | Fraction, orders: Sequence[int] = ORDERS
) -> float:
    """The least epsilon (rounded up) that rho-zCDP and trainings come to at this delta: divergences add at
    each integer order."""
    if not curves:
        return epsilon_of(rho, delta)
    _check(1.0, delta)
    with localcontext(prec=_DIGITS):
        log_delta, each = _decimal(delta).ln(), _decimal(rho)
        epsilon = min(
            order * each
            + sum(curve.divergence(order) for curve in curves)
            + (_of_integer_order(order) - log_delta) / (order - 1)
            for order in orders
        )
    return math.nextafter(float(max(_rounded(epsilon, ROUND_CEILING), Decimal(0))), math.inf)


def epsilon_beside(
    rho: Fraction, delta: float | Fraction, beta: Fraction, curves: Sequence[SampledGaussian] = ()
) -> float:
    """The least epsilon (rounded up) with which rho and trainings, and samplers that are beta from their
    distributions, come to this delta.

    The least with epsilon_of_curves(rho, curves, delta - (1 + e^epsilon) beta) <= epsilon; infinite if there
    is none.
    """
    epsilon = epsilon_of_curves(rho, curves, delta)
    if beta == 0:
        return epsilon
    for _ in range(_ATTEMPTS):  # upwards from an epsilon that is too small, until one proves to be enough
        left = Fraction(delta) - _loss(_decimal(epsilon), beta) if epsilon < _MAX_EPSILON else Fraction(0)
        if left <= 0:
            return math.inf
        needed = epsilon_of_curves(rho, curves, left)
        if needed <= epsilon:
            return epsilon
        epsilon = max(needed, epsilon) * (1 + 2**-40)
    return math.inf


def _loss(epsilon: Decimal, beta: Fraction) -> Fraction:
    """(1 + e^epsilon) beta, rounded up."""
    with localcontext(prec=_DIGITS):
        return Fraction(_rounded((1 + epsilon.exp()) * _decimal(beta), ROUND_CEILING))


@dataclass(frozen=True)
class Budget:
    """A study's promise and the caps that keep it: sum of rho <= rho_cap and sum of beta <= beta_cap.

    curve: of the one training that a run may charge beside them; rho_cap is then what the rest may spend.
    """

    epsilon: float
    delta: float
    rho_cap: Fraction
    beta_cap: Fraction
    curve: SampledGaussian | None = None

    @classmethod
    def of(cls, epsilon: float, delta: float, beta_cap: Fraction) -> Budget:
        """Calibrate rho_cap to (epsilon, delta - (1 + e^epsilon) beta_cap). Raises `StudyInvalid`.

        beta_cap: the most statistical distance all samplers of the run can add up to, known before it; more
        than delta/100 is refused.
        """
        _check(epsilon, delta)
        room = calibrate(epsilon, delta, beta_cap) if 0 <= beta_cap <= Fraction(delta) / 100 else None
        if room is None:
            raise StudyInvalid(
                f"[privacy] delta = {delta} is too small for this many releases: the statistical distance of their samplers from "
                f"the exact distribution may reach {float(beta_cap):.2g}, and at most a hundredth of delta is allowed; raise it."
            )
        return cls(epsilon, delta, room.rho, beta_cap)

    @property
    def calibration(self) -> Calibration:
        """The epsilon and delta that rho_cap was solved at."""
        room = calibrate(self.epsilon, self.delta, self.beta_cap)
        assert room is not None  # `of` has refused it
        return room


@dataclass
class Accountant(Guard):
    """A party's guard: authorises an event if the budget holds, and has it recorded before the release may be
    opened.

    Every call is charged, also one with the same event and inputs: whoever repeats a recorded release after a
    crash (same release id, same inputs, hence the same noise: `docs/design/mechanisms.md` 4) must read it
    from the journal and not ask again.

    record: writes events, each with its inputs, where they survive a crash, before `authorise` returns (the
    journal; the custodian's ledger).
    """

    budget: Budget
    record: Callable[[Sequence[tuple[Event, bytes]]], None] | None = None
    events: list[Event] = field(default_factory=list)
    rho: Fraction = Fraction(0)
    beta: Fraction = Fraction(0)
    curves: list[SampledGaussian] = field(default_factory=list)

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Charge one release. Raises `BudgetRefused`, and then charges and records nothing."""
        self.authorise_all([(event, inputs)])

    def authorise_all(self, releases: Sequence[tuple[Event, bytes]]) -> None:
        """Charge several, recorded at once. Raises `BudgetRefused`, and then charges and records none of them."""
        rho, beta, curves = self.rho, self.beta, list(self.curves)
        for event, _ in releases:
            if event.rho < 0 or event.beta < 0:
                raise BudgetRefused(
                    f"The release '{event.what}' claims a negative cost; nothing is released."
                )
            for name, spent, asked, cap in (
                ("rho", rho, event.rho, self.budget.rho_cap),
                ("the samplers' statistical distance", beta, event.beta, self.budget.beta_cap),
            ):
                if spent + asked > cap:
                    raise BudgetRefused(
                        f"The release '{event.what}' would spend {float(asked):.6g} of {name}; {float(spent):.6g} is "
                        f"spent already and the study's budget allows {float(cap):.6g}."
                    )
            curve = curve_of(event)
            if curve is not None and (curves or curve != self.budget.curve):
                raise BudgetRefused(
                    f"The release '{event.what}' is not the one training that the study's budget allows; nothing is released."
                )
            rho, beta = rho + event.rho, beta + event.beta
            curves += [] if curve is None else [curve]
        if self.record is not None and releases:
            self.record(releases)
        self.events += [event for event, _ in releases]
        self.rho, self.beta, self.curves = rho, beta, curves
