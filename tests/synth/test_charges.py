"""Planned charges are never below what the mechanisms really charge, and hardly above it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Adjacency, StudyFacts
from mpc_protocols.mechanisms.gaussian import MIN_SIGMA2, sampler
from mpc_protocols.mechanisms.measurement import plan_marginals
from mpc_protocols.mechanisms.selection import plan_selection
from synth.budget.charges import MAX_EPSILON, Charges, cell_distance, mean_noise, root, significant

fractions = st.fractions(Fraction(1, 10**12), Fraction(10**12))
settings_of_privacy = st.tuples(st.sampled_from(["add-remove", "replace"]), st.integers(1, 50))


@given(fractions, st.integers(8, 60))
def test_rounding_is_tight_and_on_the_side_asked_for(x: Fraction, bits: int) -> None:
    up, down = significant(x, bits, up=True), significant(x, bits, up=False)
    assert down <= x <= up
    assert up - down <= x / 2 ** (bits - 2)
    r = root(x, bits)
    assert r * r <= x < (r * (1 + Fraction(8, 2**bits))) ** 2


@given(settings_of_privacy, st.fractions(Fraction(1, 10**6), 100))
def test_noise_and_epsilon_for_a_cost_cost_at_most_that(
    privacy: tuple[Adjacency, int], rho: Fraction
) -> None:
    charges = Charges(*privacy)
    sigma2, epsilon = charges.sigma2(rho), charges.epsilon(rho)
    assert charges.measuring(sigma2) <= rho and charges.selecting(epsilon) <= rho
    if sigma2 > MIN_SIGMA2:
        assert charges.measuring(sigma2) >= rho * (1 - Fraction(1, 2**30))
    if epsilon < MAX_EPSILON:
        assert charges.selecting(epsilon) >= rho * (1 - Fraction(1, 2**30))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_oracles_events_are_what_was_planned(adjacency: Adjacency, rows: int) -> None:
    charges = Charges(adjacency, rows)
    facts = StudyFacts({"a": 40, "b": 7}, adjacency, rows, 10_000, bytes(32))
    for sigma2 in (Fraction(1, 50), Fraction(9, 2), Fraction(400), Fraction(10**5)):
        event = plan_marginals(facts, [("a",), ("a", "b")], [sigma2] * 2, 10_000, first=False).event
        assert event.rho == 2 * charges.measuring(sigma2)
        assert event.beta <= 2 * charges.distance(sigma2)
    factor = rows * (2 if adjacency == "replace" else 1)
    for epsilon in (Fraction(1, 1000), Fraction(1, 30), MAX_EPSILON):
        planned = charges.selecting(epsilon)
        weights, penalties = [Fraction(3), Fraction(8)], [Fraction(5), Fraction(1)]
        event = plan_selection(weights, penalties, epsilon, [9_000, 9_000], 10_000, factor).event
        assert planned * Fraction(9, 10) <= event.rho <= planned


def test_the_distance_bounds_every_sampler_up_to_a_sigma() -> None:
    variances = [Fraction(1, 64), *map(Fraction, (1, 77, 9999, 10_001, 12_345, 10**6, 10**8))]
    for i, sigma2 in enumerate(variances):
        assert max(sampler(v).tv for v in variances[: i + 1]) <= cell_distance(sigma2) < Fraction(1, 2**45)


def test_mean_noise_is_that_of_a_gaussian() -> None:
    assert float(mean_noise(Fraction(436))) == pytest.approx(math.sqrt(2 * 436 / math.pi), rel=1e-10)


@pytest.mark.parametrize(
    ("adjacency", "rows"), [("bounded", 1), ("replace", 0), ("replace", True), ("replace", 1.5)]
)
def test_nonsense_is_refused(adjacency: str, rows: int) -> None:
    with pytest.raises(StudyInvalid):
        Charges(adjacency, rows)  # type: ignore[arg-type]
