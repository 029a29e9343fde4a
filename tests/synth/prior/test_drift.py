"""How far data have moved from a prior: what is estimated, against what was put in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from synth.prior.drift import Drift, Misfit


def misfits(k: float, scale: float, seed: int, count: int = 40) -> list[Misfit]:
    """Fresh marginals of 16 cells with noise 1, whose prior has error 32 times scale, drift k and spread 50."""
    rng = np.random.default_rng(seed)
    variance = 1 + (4 + scale * 32 + k**2 * 50) / 16
    squares = variance * rng.chisquare(16, count)
    return [
        Misfit(frozenset((f"a{i}", "b")), 16, 1.0, float(q), 1e4, 4.0, 32.0, 50.0)
        for i, q in enumerate(squares)
    ]


@pytest.mark.parametrize("k", [0.5, 2.0])
def test_drift_is_estimated_from_many_marginals(k: float) -> None:
    assert 0.6 * k < Drift.of(misfits(k, 1.0, 1)).k2 ** 0.5 < 1.3 * k


def test_without_drift_the_prior_is_as_sure_as_its_own_noise_or_surer() -> None:
    found = Drift.of(misfits(0.0, 0.3, 2))
    assert found.k2 * 50 < 8 and found.scale <= 0.5 and found.p_value > 0.5


def test_nothing_measured_says_nothing() -> None:
    found = Drift.of([])
    assert (found.k2, found.scale, found.p_value, found.rejects) == (0.0, 1.0, 1.0, False)


def test_one_marginal_that_has_drifted_alone_leaves_the_others_as_they_are() -> None:
    others = misfits(0.0, 1.0, 3)
    drifted = Misfit(frozenset(("a", "c")), 16, 1.0, 16 * 200.0, 1e4, 4.0, 32.0, 50.0)
    found = Drift.of([drifted, *others])
    assert found.beside(("a", "c")) == found.beside(("a", "b", "c")) == drifted.excess(found.scale) > 50
    assert found.beside(("c", "d")) == found.k2 < 2


def test_a_single_column_takes_what_its_own_counts_say() -> None:
    column = Misfit(frozenset("a"), 16, 1.0, 16 * 9.0, 16 * 9.0, 4.0, 0.0, 50.0)
    other = Misfit(frozenset("b"), 16, 1.0, 16.0, 16.0, 4.0, 0.0, 50.0)
    found = Drift.of([column, other])
    assert found.beside(("a",)) == pytest.approx((16 * 8 - 4) / 50) and found.beside(("b",)) == 0


def test_a_prior_that_independent_columns_beat_is_rejected_and_noise_alone_rejects_none() -> None:
    far = Misfit(frozenset("ab"), 16, 1.0, 400.0, 16.0, 4.0, 32.0, 50.0)
    equal = Misfit(frozenset("ab"), 16, 1.0, 20.0, 16.0, 4.0, 32.0, 50.0)
    assert Drift.of([far]).rejects and not Drift.of([equal]).rejects


def test_the_spread_is_exact_for_two_binary_independent_columns() -> None:
    """Log odds moved by k leave the columns alone only along (+1, -1, -1, +1), and by k a (1 - a) b (1 - b)
    to first order."""
    a, b, k = 0.3, 0.4, 1e-4
    shares = np.outer([a, 1 - a], [b, 1 - b])
    spread = float((np.square(shares) * np.outer([1 - a, a], [1 - b, b]) ** 2).sum())
    moved = k * a * (1 - a) * b * (1 - b) * np.array([[1, -1], [-1, 1]])
    assert np.square(moved).sum() == pytest.approx(k**2 * spread)
    after = shares + moved
    odds = np.log(after[0, 0] * after[1, 1] / (after[0, 1] * after[1, 0]))
    assert odds == pytest.approx(k, rel=1e-2)


def test_what_every_report_imports_waits_for_no_law() -> None:
    """Importing SciPy takes a second of each party's CPU."""
    script = "import sys, synth.prior; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
