"""Systematic rounding: floor or ceil, exact expectation of the L1 distance, totals kept, a hash of the
integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.mechanisms import rounding
from mpc_protocols.mechanisms.rounding import digest, sum_bounds, theta_of

answers_lists = st.lists(st.floats(0, 1e5) | st.just(0.0), max_size=60)
thetas = st.floats(0, 1, exclude_max=True)


def systematic(answers: np.ndarray, theta: float, row_bound: int) -> np.ndarray:
    return rounding.systematic([answers], row_bound, theta)[0]


@given(st.lists(answers_lists, max_size=5), thetas)
def test_many_candidates_are_rounded_each_by_itself(values: list[list[float]], theta: float) -> None:
    answers = [np.array(each, dtype=np.float64) for each in values]
    for answer, got in zip(answers, rounding.systematic(answers, 70_000, theta), strict=True):
        np.testing.assert_array_equal(got, systematic(answer, theta, 70_000))
    assert sum_bounds(answers, 70_000) == [sum_bounds([each], 70_000)[0] for each in answers]


@given(answers_lists, thetas)
def test_each_cell_is_floor_or_ceil_and_the_total_is_kept(values: list[float], theta: float) -> None:
    answers = np.array(values, dtype=np.float64)
    got = systematic(answers, theta, 10**9)
    assert got.dtype == np.int64 and got.shape == answers.shape
    # the cumulative sum is floating point: an answer within its last bits of an integer may count as either
    # side
    tolerance = 1e-9 * (1 + answers.sum())
    assert np.all(got >= np.floor(answers - tolerance)) and np.all(got <= np.ceil(answers + tolerance))
    assert np.all(got[answers == 0] == 0)
    assert abs(got.sum() - answers.sum()) <= 1 + tolerance


@given(st.lists(st.floats(-10, 1e4), max_size=60), thetas, st.integers(1, 500))
def test_results_stay_within_the_bounds_announced(values: list[float], theta: float, rows: int) -> None:
    answers = np.array(values, dtype=np.float64)
    got = systematic(answers, theta, rows)
    assert np.all((got >= 0) & (got <= rows))
    assert got.sum() <= sum_bounds([answers], rows)[0] <= np.clip(answers, 0, rows).sum() * (1 + 1e-8) + 2


def test_expected_distance_is_the_unrounded_one() -> None:
    """Averaged over a fine grid of theta the L1 distance to any integers equals that of the answers; nearest
    does not."""
    rng = np.random.default_rng(2)
    answers = rng.uniform(0, 3, 40)
    counts = rng.integers(0, 4, 40)
    grid = (np.arange(4000) + 0.5) / 4000
    mean = np.mean([np.abs(counts - systematic(answers, t, 100)).sum() for t in grid])
    exact = np.abs(counts - answers).sum()
    assert mean == pytest.approx(exact, abs=40 / 4000 * 2)  # each cell's jump is placed to within a grid step


def test_wide_uniform_answers_keep_their_distance() -> None:
    """The published example: 100,000 cells, 45,000 rows, uniform model. Systematic stays within 6 sd of the
    exact distance (sd at most sqrt(cells) / 2 = 158; false alarm 2e-9); rounding to nearest is off by a
    fifth."""
    cells, rows = 100_000, 45_000
    rng = np.random.default_rng(4)
    counts = rng.multinomial(rows, np.full(cells, 1 / cells))
    answers = np.full(cells, rows / cells)
    exact = np.abs(counts - answers).sum()
    rounded = np.abs(counts - systematic(answers, 0.123, rows)).sum()
    assert abs(rounded - exact) < 6 * 158
    assert np.abs(counts - np.round(answers)).sum() < 0.8 * exact


def test_theta_depends_on_session_and_step_only() -> None:
    values = {theta_of(session, step) for session in (b"a" * 32, b"b" * 32) for step in range(100)}
    assert len(values) == 200 and all(0 <= v < 1 for v in values)
    assert theta_of(b"a" * 32, 3) == theta_of(b"a" * 32, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_answers_that_are_not_finite(bad: float) -> None:
    """NaN is refused; infinities are clipped into the public range like any other number."""
    answers = np.array([1.0, bad, 2.0, 3.0])
    if np.isnan(bad):
        with pytest.raises(ValueError, match="not finite"):
            sum_bounds([answers], 10)
    else:
        assert systematic(answers, 0.5, 10).tolist() == [1, 10 if bad > 0 else 0, 2, 3]


def test_digest_covers_values_lengths_and_order() -> None:
    a, b = np.array([1, 2], dtype=np.int64), np.array([3], dtype=np.int64)
    others = [[b, a], [a], [np.array([1, 2, 3])], [a, np.array([4])], [a, b, np.array([], dtype=np.int64)]]
    digests = {digest([a, b]), *(digest(other) for other in others)}
    assert len(digests) == 1 + len(others)
    assert digest([np.array([1, 2], dtype=np.int32)]) == digest([a])
