"""The second accountant against Google's library, and against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant

from mpc_protocols.mechanisms.randomised_response import Response
from runner.review.audit import second_accountant
from runner.review.verification.spending import ROUNDING
from synth.budget.accounting import Budget


def test_noise_of_many_releases_costs_what_dp_accounting_says() -> None:
    """A discrete Gaussian of sigma 8 is all but a continuous one."""
    events = [{"what": "measure", "cliques": [["a"], ["b"]], "sigma2": "64/1"}] * 20
    accountant = RdpAccountant([1 + x / 10 for x in range(1, 1000)])
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(8.0), 40))
    expected = accountant.get_epsilon(1e-6)
    assert second_accountant.epsilon(events, 1e-6, 1, 1) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 50.0])
def test_noise_that_spends_all_of_a_budget_comes_to_its_epsilon(epsilon: float) -> None:
    """To the nine digits that `verify` compares: the order is searched as finely as the budget's was."""
    budget = Budget.of(epsilon, 1e-6, Fraction(0))
    total = {"what": "total", "sigma2": str(Fraction(1000**2) / (2 * budget.rho_cap))}
    found = second_accountant.epsilon([total], float(budget.calibration.delta), 1, 1000)
    assert found == pytest.approx(float(budget.calibration.epsilon), rel=ROUNDING)


@pytest.mark.parametrize("epsilon", [1.0, 12.0, 30.0, 1e4])
def test_samplers_of_finite_precision_leave_the_epsilon_that_the_budget_was_solved_at(epsilon: float) -> None:
    budget = Budget.of(epsilon, 1e-6, beta := Fraction(1, 10**12))
    found = second_accountant.countable(epsilon, 1e-6, float(beta))
    assert found == pytest.approx(float(budget.calibration.epsilon), rel=ROUNDING)
    assert (found == epsilon) == (epsilon < 12.5)
    assert second_accountant.countable(epsilon, 1e-6, 0.0) == epsilon
    assert second_accountant.countable(epsilon, 1e-6, 1e-6) <= 0  # they take all of delta


def test_one_changed_row_costs_more_under_replacement_and_with_many_rows() -> None:
    event = {"what": "measure", "cliques": [["a"]], "sigma2": "25/1"}
    rho = second_accountant.rho(event, 1, 1)
    assert rho == pytest.approx(1 / 50, rel=1e-6)
    assert second_accountant.rho(event, 2, 1) == pytest.approx(2 * rho, rel=1e-6)
    assert second_accountant.rho(event, 1, 3) == pytest.approx(9 * rho, rel=1e-6)
    distances = event | {"what": "distances"}
    assert second_accountant.rho(distances, 2, 1) == pytest.approx(4 * rho, rel=1e-6)


def test_a_discrete_gaussian_costs_at_most_a_continuous_one() -> None:
    for sigma2 in (0.3, 1.0, 7.0, 400.0):
        for order in second_accountant.ORDERS:
            assert second_accountant.noise(sigma2, 1, order) <= order / (2 * sigma2) * (1 + 1e-7)


def test_a_bounded_range_costs_at_most_an_eighth_of_its_square() -> None:
    for epsilon in (0.01, 0.3, 1.0, 3.0):
        for order in second_accountant.ORDERS:
            assert second_accountant.bounded_range(epsilon, order) <= order * epsilon**2 / 8 * (1 + 1e-7)


def test_wide_noise_and_small_selections_are_charged_to_the_digits_that_are_compared() -> None:
    for sigma2 in (25.0, 1e3, 11681.0, 4e4, 8.9e4, 1e7):
        event = {"what": "total", "sigma2": f"{sigma2:.0f}/1"}
        assert second_accountant.rho(event, 1, 1) == pytest.approx(1 / (2 * sigma2), rel=ROUNDING)
    for epsilon in (1e-4, 1e-3, 1e-2):
        event = {"what": "choices", "epsilon": str(epsilon)}
        assert second_accountant.rho(event, 1, 1) <= epsilon**2 / 8 * (1 + ROUNDING)


def test_what_clients_and_owners_release_is_charged() -> None:
    one = {"what": "measure", "cliques": [["a"], ["b"]], "sigma2": "40/1"}
    assert second_accountant.rho({**one, "what": "sum"}, 2, 1) == second_accountant.rho(one, 2, 1)
    assert second_accountant.rho({"what": "sizes", "sigma2": "0"}, 1, 1) == 0
    assert second_accountant.rho({"what": "sizes", "sigma2": "50"}, 1, 2) == pytest.approx(4 / 100, rel=1e-9)
    assert second_accountant.rho({"what": "label-rate", "sigma2": "50/1"}, 2, 1) == pytest.approx(2 / 100)
    assert second_accountant.rho({"what": "own model", "budget": 0.1}, 1, 1) == pytest.approx(0.1)


@pytest.mark.parametrize("values", [2, 4])
@pytest.mark.parametrize("keep", [0.5001, 0.6, 0.999])
def test_a_response_costs_the_divergence_of_its_probabilities(values: int, keep: float) -> None:
    other = (1 - keep) / (values - 1)
    told = {"what": "responses", "keep": [str(Fraction(keep))], "values": [values]}
    for order in (1.01, 2.0, 64.0):
        terms = (keep**order * other ** (1 - order), other**order * keep ** (1 - order), (values - 2) * other)
        expected = math.log(math.fsum(terms)) / (order - 1)
        assert second_accountant.divergence(told, order, 1, 1) == pytest.approx(expected, rel=1e-4, abs=1e-12)
    response = Response(values, round(keep * 2**64))
    assert second_accountant.rho(told, 1, 1) <= float(response.rho) * (1 + ROUNDING)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.5, 0.025, 6000), (0.5, 0.25, 10), (8.0, 0.5, 100)])
def test_a_training_costs_what_dp_accounting_says(noise: float, rate: float, steps: int) -> None:
    event = {"what": "train", "noise2": str(noise**2), "rate": str(rate), "steps": steps}
    accountant = RdpAccountant([2, 3, 5, 8, 16, 64])
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps))
    for order, expected in zip(accountant._orders, accountant._rdp, strict=True):
        assert second_accountant.divergence(event, float(order), 1, 1) == pytest.approx(expected, rel=1e-6)


def test_buckets_cost_their_exposures() -> None:
    event = {"what": "train", "noise2": "100/1", "exposures": 8, "owners": ["north", "south"]}
    assert second_accountant.divergence(event, 3.0, 1, 1) == 3 * 16 / 200
    assert second_accountant.divergence(event, 3.0, 2, 1) == 4 * 3 * 16 / 200


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ValueError, match="knows no release called 'median'"):
        second_accountant.rho({"what": "median", "sigma2": "1/1", "cliques": [["a"]]}, 1, 1)
