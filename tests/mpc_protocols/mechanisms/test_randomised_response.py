"""Randomised response: its law by enumeration, its certified cost against the divergence, its unbiased
inverse.

Tests of drawn responses use fixed seeds, so they never fail by chance; what they would miss with fresh ones
is stated.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.mechanisms.randomised_response import GRID, Response, cell_variance, certified, unmixed

RHOS = (Fraction(1, 4000), Fraction(1, 100), Fraction(1))
SIZES = (2, 3, 4, 16)


def divergence(response: Response, order: mpmath.mpf) -> mpmath.mpf:
    """D_a between two codes, from the probabilities of all values."""
    keep, other = (mpmath.mpf(of.numerator) / of.denominator for of in (response.keep, response.other))
    first = [keep, *[other] * (response.values - 1)]
    second = [other, keep, *[other] * (response.values - 2)]
    total = sum(p**order * q ** (1 - order) for p, q in zip(first, second, strict=True))
    return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("values", SIZES)
def test_the_charge_is_above_the_cost_at_every_order_and_hardly_more(values: int, rho: Fraction) -> None:
    response = Response.at(values, rho)
    assert 0.97 * rho <= response.rho <= rho
    with mpmath.workdps(50):
        costs = [
            divergence(response, 1 + mpmath.mpf(10) ** (exponent / mpmath.mpf(20)))
            / (1 + mpmath.mpf(10) ** (exponent / mpmath.mpf(20)))
            for exponent in range(-60, 121)
        ]
        worst = max(costs)
    charged = mpmath.mpf(response.rho.numerator) / response.rho.denominator
    assert worst <= charged <= worst * (1 + mpmath.mpf(2) / GRID)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("values", SIZES)
def test_a_ten_times_finer_grid_certifies_no_more(values: int, rho: Fraction) -> None:
    response = Response.at(values, rho)
    assert certified(response, 10 * GRID) <= response.rho


def test_more_budget_keeps_more() -> None:
    for values in SIZES:
        kept = [Response.at(values, rho).keep for rho in RHOS]
        assert kept == sorted(set(kept)) and kept[0] > Fraction(1, values)


class Script:
    """Randomness of a script: words of 64 bits first, then bytes."""

    def __init__(self, words: list[int], values: list[int]) -> None:
        self.words, self.values, self.asked = words, values, list[int]()

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        if len(self.asked) == 1:
            return np.array(self.words, "<u8").tobytes()
        drawn, self.values = self.values[:count], self.values[count:]
        return bytes(drawn)


def test_a_word_below_the_threshold_keeps_and_any_other_changes_the_code() -> None:
    response = Response(3, 2 << 62)
    script = Script([(2 << 62) - 1, 2 << 62, (1 << 64) - 1, 0], [0, 0, 1, 1])
    assert response.perturb(np.array([1, 1, 1, 1]), script).tolist() == [1, 0, 2, 1]
    assert script.asked == [32, 4]


def test_which_other_value_is_told_is_exactly_uniform() -> None:
    """Every byte that is not drawn again, once: each other value as often."""
    response, limit = Response(4, 3 << 62), 255
    told = response.perturb(np.full(limit, 2), Script([(1 << 64) - 1] * limit, list(range(limit))))
    assert Counter(told.tolist()) == {0: 85, 1: 85, 3: 85}


def test_a_byte_beyond_the_last_multiple_is_drawn_again_whatever_the_code() -> None:
    for code in (0, 1):
        script = Script([0], [255, 255, 7])
        assert Response(4, 3 << 62).perturb(np.array([code]), script).tolist() == [code]
        assert script.asked == [8, 1, 1, 1]


@pytest.mark.parametrize("sizes", [(2, 3), (3, 4), (2, 2, 4)])
def test_the_estimate_is_unbiased_on_a_million_rows(sizes: tuple[int, ...]) -> None:
    """Within 7 standard deviations of the true counts in every cell; with fresh seeds one false alarm in
    10^10 runs."""
    rng = np.random.default_rng([len(sizes), *sizes])
    rows, responses = 1_000_000, [Response.at(size, Fraction(1, 2)) for size in sizes]
    cells = rng.choice(int(np.prod(sizes)), rows, p=rng.dirichlet(np.ones(int(np.prod(sizes)))))
    codes = np.unravel_index(cells, sizes)
    told = [response.perturb(column, rng.bytes) for response, column in zip(responses, codes, strict=True)]
    counts = np.bincount(
        np.ravel_multi_index([t.astype(np.intp) for t in told], sizes), minlength=cells.max() + 1
    )
    estimate = unmixed(counts.reshape(sizes), responses)
    true = np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)
    deviations = (estimate - true) / np.sqrt(exact_variance(true, responses))
    assert np.abs(deviations).max() < 7
    assert estimate.sum() == pytest.approx(rows)


def exact_variance(true: np.ndarray, responses: list[Response]) -> np.ndarray:
    """Of each cell of the estimate: a sum over rows of products of independent weights, given the rows."""
    squares = true.astype(float)
    for axis, response in enumerate(responses):
        keep, other, size = float(response.keep), float(response.other), response.values
        gap = keep - other
        transition = np.full((size, size), other)
        np.fill_diagonal(transition, keep)  # row: true, column: told
        weight = (np.eye(size) - other) / gap  # row: cell of the estimate, column: told
        second = transition @ (weight.T**2)  # row: true, column: cell of the estimate
        squares = np.moveaxis(np.tensordot(squares, second, axes=([axis], [0])), -1, axis)
    return np.asarray(squares - true)


def test_the_stated_variance_is_that_of_codes_told_at_little_cost() -> None:
    responses = [Response.at(2, Fraction(1, 1000)), Response.at(4, Fraction(1, 1000))]
    true = np.array([[40, 0, 10, 150], [3000, 5, 5, 790]])
    stated = cell_variance(int(true.sum()), responses)
    assert np.allclose(exact_variance(true, responses), stated, rtol=0.1)


@pytest.mark.parametrize(
    ("values", "numerator"), [(1, 1 << 63), (257, 1 << 63), (2, 1 << 63), (4, 1 << 62), (2, 1 << 64)]
)
def test_no_response_hides_nothing_or_tells_nothing(values: int, numerator: int) -> None:
    with pytest.raises(ValueError, match="response"):
        Response(values, numerator)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(1, 1 << 41), Fraction(1 << 11)])
def test_a_budget_beyond_what_can_be_drawn_is_refused(rho: Fraction) -> None:
    with pytest.raises(StudyInvalid, match="cannot be drawn"):
        Response.at(2, rho)
