"""The conversion against two independent computations, its rounding direction, and the guard's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Event
from synth.budget.accounting import Accountant, Budget, epsilon_about, epsilon_of, rho_of

epsilons = st.floats(1e-3, 50)
deltas = st.floats(-30, -1).map(lambda x: 10**x)


def least_delta(rho: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """min over a of exp((a-1)(a rho - epsilon)) / (a-1) (1-1/a)^a: scipy's search, mpmath's arithmetic."""

    def log_delta(t: float) -> float:
        b = math.exp(t)
        return b * ((1 + b) * float(rho) - float(epsilon)) - t + (1 + b) * (t - math.log1p(b))

    starts = [
        minimize_scalar(log_delta, bounds=(lo, lo + 8), method="bounded", options={"xatol": 1e-10})
        for lo in range(-32, 40, 4)
    ]
    b = mpmath.exp(min(starts, key=lambda r: r.fun).x)
    with mpmath.workdps(50):
        return mpmath.exp(b * ((1 + b) * rho - epsilon)) / b * (1 - 1 / (1 + b)) ** (1 + b)


def exact(x: Fraction | float) -> mpmath.mpf:
    x = Fraction(x)
    return mpmath.mpf(x.numerator) / x.denominator


@given(epsilons, deltas)
def test_rho_is_the_largest_that_delta_allows(epsilon: float, delta: float) -> None:
    with mpmath.workdps(50):
        rho = exact(rho_of(epsilon, delta))
        # not too much: some order proves (epsilon, delta); the search below is independent, hence its own
        # 1e-9
        assert least_delta(rho, exact(epsilon)) <= exact(delta) * (1 + mpmath.mpf("1e-9"))
        # and not too little: a little more rho and no order proves it
        assert least_delta(rho * (1 + mpmath.mpf("1e-7")), exact(epsilon)) > exact(delta)


@given(epsilons, deltas)
def test_the_two_directions_meet_on_the_safe_side(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    back = epsilon_of(rho, delta)
    assert back <= epsilon * (1 + 1e-13)
    assert rho_of(back, delta) >= rho * (1 - Fraction(1, 10**12))


@given(st.floats(1e-9, 1e6), deltas)
def test_what_is_shown_is_what_is_charged_to_nine_digits(rho: float, delta: float) -> None:
    assert epsilon_about(rho, delta) == pytest.approx(epsilon_of(rho, delta), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
@pytest.mark.parametrize("rho", [0.001, 0.0306, 0.5, 4.0])
def test_against_dp_accounting(rho: float, delta: float) -> None:
    orders = [1 + math.exp(t / 200) for t in range(-1000, 2000)]
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    accountant.compose(dp_event.ZCDpEvent(rho))
    theirs = accountant.get_epsilon(delta)
    # their grid of orders cannot beat our search; with 200 orders per e-fold it comes close
    assert theirs * (1 - 1e-5) <= epsilon_of(rho, delta) <= theirs * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-5), (1.0, 1e-9), (5.0, 1e-6), (20.0, 1e-9)]
)
def test_the_gaussian_mechanism_really_has_that_delta(epsilon: float, delta: float) -> None:
    # a Gaussian with this rho has an exact delta (Balle-Wang 2018): the conversion must lie above it, and not
    # far
    mu = math.sqrt(2 * float(rho_of(epsilon, delta)))
    true = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta / 30 < true <= delta


def test_known_values() -> None:
    assert float(rho_of(1.0, 1e-5)) == pytest.approx(0.030556595197639, rel=1e-12)
    assert epsilon_of(0, 1e-9) == 0.0
    assert epsilon_of(Fraction(1, 2), 1e-5) < 0.5 + 2 * math.sqrt(
        0.5 * math.log(1e5)
    )  # better than the textbook bound


@pytest.mark.parametrize(
    ("epsilon", "delta", "named"),
    [
        (0, 1e-9, "epsilon"),
        (-1.0, 1e-9, "epsilon"),
        (math.inf, 1e-9, "epsilon"),
        (math.nan, 1e-9, "epsilon"),
        ("1", 1e-9, "epsilon"),
        (True, 1e-9, "epsilon"),
        (1.0, 0.0, "delta"),
        (1.0, 1.0, "delta"),
        (1.0, 1.5, "delta"),
        (1.0, -0.1, "delta"),
        (1.0, math.nan, "delta"),
        (1.0, "small", "delta"),
    ],
)
def test_parameters_without_a_meaning_are_refused(epsilon: float, delta: float, named: str) -> None:
    for call in (rho_of, lambda e, d: Budget.of(e, d, Fraction(0))):
        with pytest.raises(StudyInvalid) as caught:
            call(epsilon, delta)
        assert named in caught.value.sentence and caught.value.exit_code == 10


def test_the_samplers_distance_is_taken_off_delta_first() -> None:
    beta = Fraction(1, 10**12)
    budget = Budget.of(1.0, 1e-9, beta)
    assert budget.rho_cap < rho_of(1.0, 1e-9)
    with mpmath.workdps(50):
        spent = least_delta(exact(budget.rho_cap), mpmath.mpf(1)) + (1 + mpmath.e) * exact(beta)
        assert 1e-9 * (1 - 1e-6) < spent <= exact(1e-9) * (1 + mpmath.mpf("1e-9"))


def test_a_delta_that_the_samplers_would_eat_is_refused() -> None:
    assert Budget.of(1.0, 1e-9, Fraction(1e-9) / 100).rho_cap > 0
    with pytest.raises(StudyInvalid, match="delta"):
        Budget.of(1.0, 1e-9, Fraction(1e-9) / 99)


def test_an_epsilon_beyond_the_samplers_precision_is_calibrated_to_a_smaller_one() -> None:
    beta = Fraction(1, 10**15)
    budget = Budget.of(100.0, 1e-9, beta)  # (1 + e^100) beta is far above delta
    effective = math.log(1e-9 / 1e-15 / 2 - 1)
    assert budget.epsilon == 100.0
    assert budget.rho_cap == pytest.approx(float(rho_of(effective, 0.5e-9)), rel=1e-9)
    assert epsilon_of(budget.rho_cap, 0.5e-9) <= effective * (1 + 1e-9)


def event(rho: Fraction, beta: Fraction = Fraction(0)) -> Event:
    return Event("measure", rho, beta)


def test_the_accountant_charges_every_call_and_stops_at_the_cap_exactly() -> None:
    journal: list[tuple[Event, bytes]] = []
    accountant = Accountant(Budget(1.0, 1e-9, Fraction(1), Fraction(1, 2)), journal.extend)
    third = event(Fraction(1, 3))
    for _ in range(3):
        accountant.authorise(third, b"same inputs")  # a repetition is charged again
    assert accountant.rho == 1 and len(journal) == 3 and accountant.events == [third] * 3
    with pytest.raises(BudgetRefused) as caught:
        accountant.authorise(event(Fraction(1, 10**30)), b"")
    assert caught.value.exit_code == 50 and "rho" in caught.value.sentence
    assert accountant.rho == 1 and len(journal) == 3


@given(st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=6))
def test_releases_of_one_step_are_charged_as_one_by_one_and_all_or_none(steps: list[list[int]]) -> None:
    budget = Budget(1.0, 1e-9, Fraction(1), Fraction(1, 2))
    written, journal = list[Sequence[tuple[Event, bytes]]](), list[tuple[Event, bytes]]()
    together, single = Accountant(budget, written.append), Accountant(budget, journal.extend)
    for step in steps:
        releases = [(event(Fraction(part, 12)), bytes([part])) for part in step]
        before = len(written), together.rho, list(together.events)
        fits = single.rho + sum(each.rho for each, _ in releases) <= 1
        if not fits:
            with pytest.raises(BudgetRefused):
                together.authorise_all(releases)
            assert before == (len(written), together.rho, together.events)
            continue
        together.authorise_all(releases)
        for one in releases:
            single.authorise(*one)
        assert (together.rho, together.beta, together.events) == (single.rho, single.beta, single.events)
        assert len(written) == before[0] + bool(releases)  # one wait for the disk
    assert [one for releases in written for one in releases] == journal


def test_the_accountant_filters_the_samplers_distance_too() -> None:
    accountant = Accountant(Budget(1.0, 1e-9, Fraction(1), Fraction(1, 2**50)))
    accountant.authorise(event(Fraction(0), Fraction(1, 2**50)), b"")
    with pytest.raises(BudgetRefused, match="distance"):
        accountant.authorise(event(Fraction(0), Fraction(1, 2**100)), b"")
    with pytest.raises(BudgetRefused, match="negative"):
        accountant.authorise(event(Fraction(-1)), b"")


def test_an_event_that_could_not_be_recorded_is_not_authorised() -> None:
    def full_disk(releases: Sequence[tuple[Event, bytes]]) -> None:
        raise OSError("no space left")

    accountant = Accountant(Budget(1.0, 1e-9, Fraction(1), Fraction(1)), full_disk)
    with pytest.raises(OSError, match="no space"):
        accountant.authorise(event(Fraction(1, 2)), b"")
    assert accountant.rho == 0 and accountant.events == []
