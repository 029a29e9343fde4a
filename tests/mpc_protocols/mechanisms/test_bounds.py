"""The row bound: exact arithmetic, coverage, what it refuses."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.mechanisms import bounds
from mpc_protocols.mechanisms.bounds import RowBound, check_measurement, sign_bits
from mpc_protocols.mechanisms.gaussian import sample, sampler

F = Fraction


@given(
    st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(1, 10**6)), min_size=1, max_size=20),
    st.fractions(F(1, 64), 10**6, max_denominator=10**4),
    st.integers(1, 2**31 - 1),
)
def test_bound_is_the_formula(batch: list[tuple[int, int]], sigma2: Fraction, cap: int) -> None:
    """floor(N^ + 9 sigma_N) + 1 at 400 bits, clipped to 1 .. cap."""
    totals, cells = [t for t, _ in batch], [n for _, n in batch]
    got = RowBound.from_totals(totals, cells, [sigma2] * len(cells), cap)
    precision = sum(1 / (n * sigma2) for n in cells)
    assert got.variance == 1 / precision
    assert got.estimate == sum(t / (n * sigma2) for t, n in batch) / precision
    with mpmath.workprec(400):
        estimate = mpmath.mpf(got.estimate.numerator) / got.estimate.denominator
        deviation = mpmath.sqrt(mpmath.mpf(got.variance.numerator) / got.variance.denominator)
        assert got.rows == max(1, min(cap, int(mpmath.floor(estimate + 9 * deviation)) + 1))


def test_bound_is_exact_where_the_root_is_an_integer() -> None:
    """9 sigma = 90 and N^ = 100: the floor is reached, not passed."""
    assert RowBound.from_totals([100], [1], [F(100)], 10**6).rows == 191
    assert RowBound.from_totals([100], [4], [F(25)], 10**6).rows == 191
    assert (
        RowBound.from_totals([0, 1], [1, 1], [F(1, 162)] * 2, 10**6).rows == 2
    )  # 1/2 + 9 / 18 = 1, also to be reached


def test_bound_of_few_rows_is_at_least_one() -> None:
    assert RowBound.from_totals([-5000], [1], [F(1)], 10**6).rows == 1


def test_bound_exceeds_the_rows_in_every_one_of_many_runs() -> None:
    """False alarm: 2,000 batches x 3e-18. Also shows that the bound is no wider than it says: mean excess 9
    sigma_N + 1."""
    rows, cells, sigma2 = 1000, [2, 16, 100], F(50)
    excess = []
    for _ in range(2000):
        totals = [rows + int(sample(sampler(sigma2), n).sum()) for n in cells]
        got = RowBound.from_totals(totals, cells, [sigma2] * len(cells), 10**6)
        assert got.rows > rows
        excess.append(got.rows - rows)
    deviation = float(got.variance) ** 0.5
    assert np.mean(excess) == pytest.approx(9 * deviation + 0.5, abs=6 * deviation / 2000**0.5 + 0.5)


def test_beta_bounds_the_chernoff_tail() -> None:
    with mpmath.workprec(100):
        assert mpmath.exp(mpmath.mpf(-81) / 2) < mpmath.mpf(bounds.BETA.numerator) / bounds.BETA.denominator


@pytest.mark.parametrize(("rows", "planes"), [(1, 2), (45_271, 17), (10**6, 21), (2**31 - 1, 32)])
def test_sign_bits(rows: int, planes: int) -> None:
    assert sign_bits(rows) == planes


def test_refusals_name_the_numbers() -> None:
    with pytest.raises(StudyInvalid, match="2147483648 rows need 33 bits"):
        sign_bits(2**31)
    check_measurement(2**31 - 101, 100)
    with pytest.raises(StudyInvalid, match="2147483548 rows plus noise of up to 100"):
        check_measurement(2**31 - 100, 100)
    for totals, cells, sigma2 in (([], [], F(1)), ([1], [0], F(1)), ([1], [1], F(0))):
        with pytest.raises(ValueError):
            RowBound.from_totals(totals, cells, [sigma2] * len(cells), 10)
