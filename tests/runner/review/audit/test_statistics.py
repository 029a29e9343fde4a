"""Tail probabilities against SciPy's, and bounds against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mpc_protocols.engine.bitwise.bitslice import from_bits
from runner.review.audit import statistics
from runner.review.audit.groups.shares import independence, uniformity


@given(st.integers(1, 400), st.floats(0.05, 6.0))
def test_chi_square_tails_are_those_of_scipy(freedom: int, times: float) -> None:
    expected = stats.chi2.sf(times * freedom, freedom)
    assert statistics.chi_square_tail(times * freedom, freedom) == pytest.approx(
        expected, rel=1e-8, abs=1e-13
    )


@given(
    st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.floats(1e-6, 1 - 1e-6),
)
def test_binomial_tails_are_those_of_scipy(drawn: tuple[int, int], p: float) -> None:
    trials, successes = drawn
    expected = stats.binom.sf(successes - 1, trials, p)
    assert statistics.binomial_tail(successes, trials, p) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 2000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))),
    st.sampled_from([0.01, 1e-6]),
)
def test_bounds_are_those_of_clopper_and_pearson(drawn: tuple[int, int], alpha: float) -> None:
    trials, successes = drawn
    exact = stats.binomtest(successes, trials).proportion_ci(1 - 2 * alpha, "exact")
    assert statistics.at_least(successes, trials, alpha) == pytest.approx(exact.low, rel=1e-5, abs=1e-9)
    assert statistics.at_most(successes, trials, alpha) == pytest.approx(exact.high, rel=1e-5, abs=1e-9)


def test_an_exact_test_sums_what_is_no_more_likely() -> None:
    law = [0.2, 0.3, 0.5]
    chances = {
        (i, j): stats.multinomial.pmf([i, j, 12 - i - j], 12, law) for i in range(13) for j in range(13 - i)
    }
    for seen in ((12, 0, 0), (2, 4, 6), (0, 0, 12), (5, 5, 2)):
        here = chances[seen[:2]]
        expected = sum(chance for chance in chances.values() if chance <= here * (1 + 1e-9))
        assert statistics.exact_multinomial(seen, law) == pytest.approx(expected)


def test_quantiles_invert_tails() -> None:
    for p in (1e-8, 0.1, 0.5, 0.999):
        assert statistics.normal_quantile(p) == pytest.approx(stats.norm.ppf(p))


def test_places_that_are_always_alike_are_no_unfair_coins_and_others_are() -> None:
    """Half of each word is empty, as in elements with a bit that says nothing; then every bit that is sent
    follows the key."""
    rng = np.random.default_rng(5)
    key = rng.integers(0, 2, 1 << 14).astype(np.uint32)
    low = rng.integers(0, 1 << 32, 1 << 8, dtype=np.uint64)
    assert uniformity(low, key, 2) > 1e-9 and uniformity(np.zeros(1 << 8, np.uint64), key, 2) == 1
    assert uniformity(from_bits(key), key, 2) < 1e-12
    assert uniformity(from_bits(key) & low, key, 2) < 1e-12


def test_what_is_not_fair_may_still_be_independent() -> None:
    rng = np.random.default_rng(6)
    secret, other = rng.integers(0, 2, (2, 1 << 14)).astype(np.uint32)
    mostly = (rng.random(1 << 14) < 0.375).astype(np.uint32)
    assert independence(from_bits(mostly), secret) > 1e-9 and independence(from_bits(0 * mostly), secret) == 1
    assert independence(from_bits(mostly & secret), secret) < 1e-12
    assert independence(from_bits(secret ^ (mostly & other)), secret) < 1e-12


def test_what_a_test_of_a_row_needs() -> None:
    """Exact error rates of a Gaussian mechanism of mu give mu back, and a rho that is at most, and not far
    below, mu^2 / 2."""
    for mu in (0.5, 1.0, 2.0):
        best = 0.0
        for threshold in (0.5, 1.0, 2.0, 3.0):
            rates = statistics.normal_tail(threshold), statistics.normal_tail(threshold - mu)
            assert statistics.gaussian_at_least(*rates) == pytest.approx(mu)
            best = max(best, statistics.zcdp_at_least(*rates))
            assert statistics.zcdp_at_least(*rates) <= mu**2 / 2
        assert best > 0.6 * mu**2 / 2
    assert statistics.zcdp_at_least(0.5, 0.4) == statistics.gaussian_at_least(0.0, 0.4) == 0
