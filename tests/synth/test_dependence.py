"""The test of independence on released counts: its level, its power, and what it takes from a marginal."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from synth.budget.small.small_table import Bought, SmallTable
from synth.judgement.dependence import EVIDENT, PairCounts, column_sums, pairs_of, score
from synth.run import Run
from synth.synthesis import Measured
from tests.synth.oracles import codes_domain

ROWS, SIGMA = 600, 20.0


def drawn(rng: np.random.Generator, dependence: float, pairs: int, sigma: float = SIGMA) -> list[PairCounts]:
    """Pairs of four and two values; dependence: how much of the rows lies on one diagonal."""
    found = []
    for _ in range(pairs):
        joint = np.outer(rng.dirichlet(np.full(4, 5.0)), [0.65, 0.35])
        joint = (1 - dependence) * joint + dependence * np.array([[0.5, 0], [0.2, 0], [0, 0.1], [0, 0.2]])
        counts = rng.multinomial(ROWS, joint.reshape(-1)).reshape(4, 2) + rng.normal(0, sigma, (4, 2))
        found.append(PairCounts(("a", "b"), counts, sigma**2))
    return found


@pytest.mark.parametrize(("pairs", "sigma"), [(1, SIGMA), (6, SIGMA), (3, 4.0)])
def test_independent_columns_are_called_dependent_in_a_tenth_of_the_cases_at_most(
    pairs: int, sigma: float
) -> None:
    """1,000 cases of a chance of 0.1 exceed 0.14 with a chance of 2e-5."""
    rng = np.random.default_rng(pairs)
    scores = [score(drawn(rng, 0.0, pairs, sigma)) for _ in range(1000)]
    assert 0.02 < np.mean(np.array(scores) > EVIDENT) < 0.14


def test_dependence_shows_through_noise_that_is_a_fifth_of_the_rows() -> None:
    """8 cells of noise 20: 128 of 600 rows. One dependent pair among six is found, too."""
    rng = np.random.default_rng(5)
    assert all(score(drawn(rng, 0.9, 1)) > EVIDENT for _ in range(50))
    assert all(score([*drawn(rng, 0.0, 5), *drawn(rng, 0.9, 1)]) > EVIDENT for _ in range(50))


def test_drawing_alone_is_no_evidence() -> None:
    """Without noise the rows of independent columns still differ from the product: that is in the null."""
    rng = np.random.default_rng(6)
    scores = [score(drawn(rng, 0.0, 4, sigma=0.5)) for _ in range(500)]
    assert np.mean(np.array(scores) > EVIDENT) < 0.16


def test_nothing_measured_is_no_evidence() -> None:
    assert score([]) == 0.0
    assert score([PairCounts(("a", "b"), np.ones((1, 5)), 1.0)]) == 0.0


def test_a_marginal_of_three_columns_is_looked_at_pair_by_pair() -> None:
    counts = np.arange(24)
    pairs = pairs_of(Measured(("a", "b", "c"), Fraction(7), 1, counts), {"a": 2, "b": 3, "c": 4})
    assert [pair.columns for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [pair.variance for pair in pairs] == [28.0, 21.0, 14.0]
    np.testing.assert_array_equal(pairs[0].counts, counts.reshape(2, 3, 4).sum(axis=2))


def test_the_sums_of_a_marginal_come_with_the_noise_of_as_many_cells() -> None:
    values = np.arange(12)
    found = column_sums(Measured(("a", "b"), Fraction(7), 1, values), (3, 4))
    assert [of.clique for of in found] == [("a",), ("b",)]
    np.testing.assert_array_equal(found[0].values, values.reshape(3, 4).sum(axis=1))
    np.testing.assert_array_equal(found[1].values, values.reshape(3, 4).sum(axis=0))
    assert [of.variance for of in found] == [28.0, 21.0]


@pytest.mark.parametrize(
    ("excess", "goes_on"), [(0.0, [False, False]), (13.0, [True, False]), (40.0, [True, True])]
)
def test_a_second_trial_is_made_where_the_first_leaves_it_in_doubt_and_no_third(
    excess: float, goes_on: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, two of twenty runs on 600 rows with one strong predictor gave up after the first."""
    values = np.array([150 + excess, 150 - excess, 150 - excess, 150 + excess]).astype(np.int64)
    pair = Measured(("a", "b"), Fraction(100), 1, values)
    domain = codes_domain(a=2, b=2)
    run = SimpleNamespace(measurements=[pair], plan=SimpleNamespace(domain=domain), total=600)
    table = SmallTable(cast(Run, run))
    monkeypatch.setattr(table, "pays", lambda: True)
    went_on = []
    for _ in range(2):
        table.learn([Bought(10.0, 10.0)], Fraction(1, 100))
        went_on.append(table.goes_on())
    assert went_on == goes_on
