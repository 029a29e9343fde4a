"""The law of selection that is implemented, computed exactly, against the law that is charged
(`docs/design/mechanisms.md` 1.2, 6).

Charged: every log ratio of neighbours' probabilities spans at most eps' (bounded range), hence D_alpha <=
alpha eps'^2 / 8, up to n 2^-70 of total variation.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import exp, expm1, log, log1p, sqrt

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.selection import (
    SelectionPlan,
    dither_inflation,
    plan_selection,
    reference,
    tie_inflation,
)
from tests.mpc_protocols.mechanisms.laws import (
    dithered_grid_law,
    enumerated,
    exhaustive,
    exponential_mechanism,
    grid_law,
    law,
    production,
    small_table,
)

RUN_EPSILONS = (0.05, 0.1, 1.0, 5.0)
ALPHAS = (1.5, 2.0, 4.0, 16.0, 64.0)


# -- the reference has the law computed here
# -----------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 1, 3), (5, 2, 2), (-4, 0, 1)])
def test_reference_law_by_enumerating_all_random_bits(
    scores: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """6.1: 16 values of U and 2 of V for each of 3 candidates, 2^15 draws of the reference itself with a tiny
    table."""
    tiny = small_table(1.0, -2, 4, bits=4)
    monkeypatch.setattr(gumbel, "_thresholds", lambda: tiny.thresholds)
    monkeypatch.setattr(gumbel, "LOW", tiny.low)
    frequencies = exhaustive(scores, 1, tiny, lambda u, uniforms, dithers: reference(u, uniforms, dithers, 1))
    assert frequencies == enumerated(scores, 1, tiny)
    np.testing.assert_allclose(law(scores, 1, tiny), [float(f) for f in frequencies], rtol=1e-14)


@pytest.mark.parametrize(
    ("scores", "a"), [((0, 100, 3, -20), 0), ((7, 0, 130, 64), 1), ((0, -55, 201, 9), 3), ((1, 0, 0), 4)]
)
def test_closed_form_sum_equals_big_integer_sum(scores: tuple[int, ...], a: int) -> None:
    """The float64 sum over segments that the other tests use, against exact integers over 2^(n (80 + a))."""
    table = production()
    exact = enumerated(scores, a, table)
    assert sum(exact) == 1
    np.testing.assert_allclose(law(scores, a, table), [float(p) for p in exact], rtol=2e-13)


def test_grid_law_of_the_integer_table_equals_its_closed_form() -> None:
    """6.2: a = 0 has a fixed tie order; (1/gamma) ln(C_q / C_{q-1}) to the precision of the comparison."""
    rng = np.random.default_rng(5)
    table = production()
    for _ in range(5):
        scores = [int(x) for x in rng.integers(-150, 150, 4)]
        closed = grid_law(scores, range(4), 1 / 64)
        exact = [float(p) for p in enumerated(scores, 0, table)]
        np.testing.assert_allclose(closed, exact, rtol=1e-13)


@pytest.mark.parametrize(("a", "n"), [(1, 4), (2, 3), (3, 2)])
def test_dithered_law_equals_the_mixture_over_z(a: int, n: int) -> None:
    """6.3: the dither lemma. Ties by z, then position; z uniform whatever the scores are."""
    rng = np.random.default_rng(a)
    for _ in range(5):
        scores = [int(x) for x in rng.integers(-90, 90, n)]
        np.testing.assert_allclose(
            law(scores, a, production()), dithered_grid_law(scores, a, 1 / 64), rtol=0, atol=3e-15
        )


def test_law_is_close_to_the_exponential_mechanism_on_fine_grids() -> None:
    """At a = 6 and above the two differ by less than 0.1 % per probability: so a chi-square alone would find
    no error."""
    rng = np.random.default_rng(6)
    for a in (6, 10):
        scores = [int(x) for x in rng.integers(0, 200 << a, 4)]
        ideal = exponential_mechanism(scores, 1 / (64 << a))
        np.testing.assert_allclose(law(scores, a, production()), ideal, rtol=1e-3)


# -- the charge
# --------------------------------------------------------------------------------------------------------


def _rho(epsilon: float, delta: float) -> float:
    """zCDP of (epsilon, delta), by bisection over rho and a grid of alpha; good to a few per cent, which is
    all it is for."""

    def achieved(rho: float) -> float:
        alphas = 1 + np.exp(np.linspace(-6, 8, 400))
        logs = (alphas - 1) * (alphas * rho - epsilon) + alphas * np.log1p(-1 / alphas) - np.log(alphas - 1)
        return exp(min(0.0, float(logs.min())))

    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if achieved(middle) <= delta else (low, middle)
    return low


def _selection_epsilons(run_epsilon: float) -> list[Fraction]:
    """What one selection of a run may spend (a tenth of rho over 10 or 224 rounds), and the whole epsilon at
    once."""
    rho = _rho(run_epsilon, 1e-9)
    return [Fraction(sqrt(8 * 0.1 * rho / rounds)).limit_denominator(10**6) for rounds in (10, 224)] + [
        Fraction(run_epsilon)
    ]


def _starts(a: int, rng: np.random.Generator, n: int) -> Iterator[list[int]]:
    """Scores of one world: all equal, one ahead, a staircase, within a grid step of each other, random."""
    g = 1 << a
    yield [0] * n
    yield [64 * g * 3] + [0] * (n - 1)
    yield [64 * g * 2 * q for q in range(n)]
    yield [int(x) for x in rng.integers(0, g + 1, n)]
    yield [int(x) for x in rng.integers(0, 64 * 8 * g, n)]


def _moves(sensitivity: int, rng: np.random.Generator, n: int) -> Iterator[tuple[int, ...]]:
    """Every integer move of one unit where there are few, else all corners; and one move inside."""
    few = (2 * sensitivity + 1) ** n <= 81
    yield from product(range(-sensitivity, sensitivity + 1) if few else (-sensitivity, sensitivity), repeat=n)
    yield tuple(int(x) for x in rng.integers(-sensitivity, sensitivity + 1, n))


def _assert_within(p: NDArray[np.float64], other: NDArray[np.float64], charged: float, beta: float) -> float:
    """Bounded range and Renyi divergence of two laws; returns the range."""
    assert min(p.min(), other.min()) > 1e-12
    slack = 1e-11 + 4 * beta / min(
        p.min(), other.min()
    )  # float64 of the comparison, and the tables' distance
    ratios = np.log(p / other)
    spread = float(ratios.max() - ratios.min())
    assert spread <= charged + slack
    for alpha in ALPHAS:
        # ratios are known to be finite, so the divergence is computed without overflow from them
        divergence = log(float((p * np.exp((alpha - 1) * (ratios - ratios.max()))).sum())) / (
            alpha - 1
        ) + float(ratios.max())
        assert divergence <= alpha * charged**2 / 8 + slack
    return spread


def _plan(epsilon: Fraction, n: int, rows: int, factor: int = 1) -> SelectionPlan:
    return plan_selection([Fraction(1)] * n, [Fraction(0)] * n, epsilon, [rows] * n, rows, factor)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("run_epsilon", RUN_EPSILONS)
def test_implemented_law_stays_within_what_is_charged(run_epsilon: float, n: int) -> None:
    """Exactly computed probabilities, all neighbour moves, up to 4 candidates: eps'^2 / 8 covers every pair."""
    rng = np.random.default_rng(round(run_epsilon * 100) + n)
    table = production()
    for epsilon in _selection_epsilons(run_epsilon):
        for rows in (45_271, 3_000_000):
            plan = _plan(epsilon, n, rows)
            rho, charged = plan.event.rho, plan.event.detail["epsilon"]
            assert isinstance(charged, float)
            assert float(rho) == pytest.approx(charged**2 / 8, rel=1e-12) and rho <= epsilon**2 / 8
            widest = 0.0
            for start in _starts(plan.a, rng, n):
                before = law(start, plan.a, table)
                assert before.sum() == pytest.approx(1, abs=1e-12)
                for move in _moves(plan.sensitivity, rng, n):
                    after = law([u + v for u, v in zip(start, move, strict=True)], plan.a, table)
                    widest = max(widest, _assert_within(before, after, charged, float(plan.event.beta)))
            # not by luck: opposite moves really use almost all of what is charged
            assert widest > 0.97 * charged


@pytest.mark.parametrize(
    ("a", "sensitivity"), [(0, 1), (0, 5), (1, 1), (1, 2), (2, 1), (3, 2), (4, 3), (5, 1), (6, 64)]
)
def test_theorems_bound_the_range_on_coarse_grids_too(a: int, sensitivity: int) -> None:
    """6.3: also where the sensitivity is far below a grid step; Theorem 1 where it divides, else Theorem 2."""
    rng = np.random.default_rng(100 * a + sensitivity)
    epsilon = sensitivity / (32 << a)
    proved = epsilon * (1 + float(tie_inflation() if sensitivity % (1 << a) == 0 else dither_inflation(a)))
    for n in (2, 3, 4):
        for start in _starts(a, rng, n):
            before = law(start, a, production())
            for move in _moves(sensitivity, rng, n):
                after = law([u + v for u, v in zip(start, move, strict=True)], a, production())
                _assert_within(before, after, proved, n * 2.0**-70)


def test_without_the_dither_the_charge_would_not_hold() -> None:
    """Why V exists: on a grid coarser than the scores a move of one unit can flip a whole step."""
    g, sensitivity = 64, 1
    charged = sensitivity / (32 * g)
    before = np.array(grid_law([0, 0], (0, 1), 1 / 64))
    after = np.array(grid_law([0, 1], (0, 1), 1 / 64))  # floor(u / g) has crossed a step
    spread = np.ptp(np.log(before / after))
    assert spread > 30 * charged


def test_inflations_are_upper_bounds_and_tight() -> None:
    """Rationals rounded up to 2^-64: at least the formulas of Theorem 1 and 2, and less than 2^-63 above
    them."""
    with mpmath.workprec(200):
        ulp = mpmath.mpf(2) ** -63

        def mp(x: Fraction) -> mpmath.mpf:
            return mpmath.mpf(x.numerator) / x.denominator

        assert 0 <= mp(tie_inflation()) - mpmath.tanh(mpmath.mpf(1) / 256) < ulp
        gamma = mpmath.mpf(1) / 64
        for a in range(25):
            g = mpmath.mpf(2) ** a
            h = gamma * (1 + 1 / g)
            first = gamma**2 * mpmath.exp(4 * h) * (mpmath.mpf(1) / 3 + 2 / g) + 2 * gamma / g
            second = gamma**2 * mpmath.exp(6 * h) * (mpmath.mpf(3) / 2 + 9 / g) + 4 * gamma / g
            assert 0 <= mp(dither_inflation(a)) - 2 * (first + second) / (1 - first) < ulp
    published = {
        0: 0.20,
        3: 0.025,
        4: 0.013,
        5: 0.0070,
        6: 0.0040,
        8: 0.0017,
        10: 0.0012,
        12: 0.0010,
    }  # `docs/design/mechanisms.md` 1.2
    for a, figure in published.items():
        assert float(dither_inflation(a)) == pytest.approx(figure, rel=0.06)


def test_poisson_correction_of_the_closed_form_is_negligible() -> None:
    """r = 2 sum |Gamma(1 + 2 pi i k / gamma)| is 1e-272 at gamma = 1/64, far below the 2^-64 the inflation is
    rounded by."""
    with mpmath.workprec(100):
        r = 2 * abs(mpmath.gamma(1 + 2j * mpmath.pi * 64))
        assert r < mpmath.mpf("1e-271")


def test_small_helpers_agree_with_their_definitions() -> None:
    """The oracle's own closed forms at a point that can be checked by hand: two equal scores, the first wins
    ties."""
    gamma = 1 / 64
    first, second = grid_law([0, 0], (0, 1), gamma)
    assert first == pytest.approx(log((1 + exp(gamma)) / 2) / gamma, rel=1e-14)
    assert first + second == pytest.approx(1, rel=1e-14)
    assert log1p(expm1(gamma) / 2) / gamma == pytest.approx(first, rel=1e-14)


def test_far_behind_is_impossible() -> None:
    """The noise is bounded: 3,446 grid steps behind, a candidate's probability is exactly 0 (and its ideal
    mass inside beta)."""
    table = production()
    assert enumerated((0, 3446), 0, table)[0] == 0
    assert 0 < enumerated((0, 3445), 0, table)[0] <= Fraction(1, 2**140)
