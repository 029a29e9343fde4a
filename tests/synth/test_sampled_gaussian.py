"""The curve of sampled Gaussian releases, against dp-accounting, against the drawn tables' own law, and in an
accountant."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms.gaussian import LOCAL_BITS, half_table
from synth.budget.accounting import Accountant, Budget, epsilon_beside, epsilon_of, epsilon_of_curves
from synth.budget.sampled_gaussian import ORDERS, TRAIN, SampledGaussian, curve_of

CURVES = [
    SampledGaussian(Fraction(151, 100) ** 2, Fraction(246, 10_000), 6_000),
    SampledGaussian(Fraction(87, 10) ** 2, Fraction(1, 40), 12_000),
    SampledGaussian(Fraction(1), Fraction(1, 2), 1),
    SampledGaussian(Fraction(4), Fraction(1), 3),
]


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.to_text())
def test_every_order_is_dp_accountings(curve: SampledGaussian) -> None:
    accountant = RdpAccountant(list(ORDERS))
    step = GaussianDpEvent(math.sqrt(curve.sigma2))
    sampled = PoissonSampledDpEvent(float(curve.rate), step) if curve.rate < 1 else step
    accountant.compose(SelfComposedDpEvent(sampled, curve.steps))
    for order, expected in zip(ORDERS, accountant._rdp, strict=True):
        assert float(curve.divergence(order)) == pytest.approx(expected, rel=1e-9)
    delta = 1e-6
    assert epsilon_of_curves(Fraction(0), [curve], delta) == pytest.approx(
        accountant.get_epsilon(delta), rel=1e-9
    )


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(1, 3)])
def test_the_tables_own_law_costs_no_more_in_either_direction(sigma: Fraction, rate: Fraction) -> None:
    """Noise of a table drawn by an owner, moved by one: moments at integer orders, summed over all values it
    can have.

    The table ends where the exact law has 2^-128 left, so that values beyond are compared with the exact
    weights instead.
    """
    table = half_table(sigma**2, LOCAL_BITS)
    falls = [Fraction(0), *(Fraction(t, 1 << LOCAL_BITS) for t in table.thresholds), Fraction(1)]
    half = [float(later - earlier) for earlier, later in pairwise(falls)]
    reach = len(half) - 1
    weights = np.array([*(half[:0:-1]), 2 * half[0], *half[1:]]) / 2
    at = np.zeros(2 * reach + 2)
    moved = at.copy()
    at[:-1], moved[1:] = weights, weights
    q, (at, moved) = float(rate), (at[1:-1], moved[1:-1])  # what both can have
    ratio = moved / at
    for order in (2, 3, 5, 8, 16):
        formula = math.exp(float(SampledGaussian(sigma**2, rate, 1).divergence(order)) * (order - 1))
        assert (at * (1 - q + q * ratio) ** order).sum() <= formula * (1 + 1e-12)
        assert (at * (1 - q + q * ratio) ** (1 - order)).sum() <= formula * (1 + 1e-12)


def test_curves_of_common_batches_would_not_add() -> None:
    """Why batches are each owner's own: four owners with common ones have 50 at a noise for which adding
    curves says 19."""
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    sigma, rate, steps, owners = 1.029, 0.01, 15_000, 4
    added = epsilon_of_curves(
        Fraction(0), [SampledGaussian(Fraction(sigma) ** 2, Fraction(rate), steps * owners)], 1e-5
    )
    joint = from_gaussian_mechanism(
        sigma / math.sqrt(owners), sampling_prob=rate, value_discretization_interval=1e-3
    ).self_compose(steps)
    assert added < 19.5
    assert joint.get_epsilon_for_delta(1e-5) > 45


def test_a_curve_adds_to_rho() -> None:
    curve = CURVES[0]
    alone, both = (
        epsilon_of_curves(Fraction(0), [curve], 1e-6),
        epsilon_of_curves(Fraction(1, 10), [curve], 1e-6),
    )
    assert alone < both < alone + epsilon_of(Fraction(1, 10), 1e-6)
    assert epsilon_of_curves(Fraction(0), [curve, curve], 1e-6) == pytest.approx(
        epsilon_of_curves(Fraction(0), [replace(curve, steps=2 * curve.steps)], 1e-6)
    )
    assert epsilon_beside(Fraction(1, 10), 1e-6, Fraction(1, 2**50), [curve]) > both
    assert epsilon_beside(Fraction(1, 10), 1e-6, Fraction(1, 10), [curve]) == math.inf
    assert epsilon_of_curves(Fraction(1, 10), [], 1e-6) == epsilon_of(Fraction(1, 10), 1e-6)


@pytest.mark.parametrize(
    ("sigma2", "rate", "steps"), [(0, "1/2", 1), ("1/100", "1/2", 1), (1, 0, 1), (1, 2, 1), (1, 1, 0)]
)
def test_no_noise_is_no_curve(sigma2: str, rate: str, steps: int) -> None:
    with pytest.raises(StudyInvalid, match="no noise, no privacy"):
        SampledGaussian(Fraction(sigma2), Fraction(rate), steps)


def test_an_accountant_allows_the_one_training_of_its_budget() -> None:
    curve = CURVES[0]
    event = Event(TRAIN, Fraction(0), Fraction(0), {"owners": ["north"], **curve.facts()})
    assert curve_of(event) == curve == SampledGaussian.from_text(curve.to_text())
    assert curve_of(replace(event, what="measure")) is None
    accountant = Accountant(replace(Budget.of(8.0, 1e-6, Fraction(0)), curve=curve))
    accountant.authorise(event, b"")
    with pytest.raises(BudgetRefused, match="not the one training"):
        accountant.authorise(event, b"")
    for budget in (Budget.of(8.0, 1e-6, Fraction(0)), replace(accountant.budget, curve=CURVES[1])):
        with pytest.raises(BudgetRefused, match="not the one training"):
            Accountant(budget).authorise(event, b"")
    with pytest.raises(StudyInvalid, match="does not say"):
        curve_of(replace(event, detail={"rate": "1/2"}))
