"""Smoothing: less noise on smooth columns, spikes and sums kept, nothing done without noise."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.budget.small.smoothing import DEVIATIONS, smoothed
from synth.domain import Categorical, Codes, Domain
from synth.workload import Workload
from tests.synth.oracles import counts_of


@pytest.mark.parametrize("size", [33, 64, 85, 100, 257])
def test_a_smooth_column_loses_most_of_its_noise(size: int) -> None:
    rng = np.random.default_rng(size)
    truth = 500 * np.exp(-(np.linspace(-2, 3, size) ** 2))
    noisy = truth + rng.normal(0, 40, size)
    found = smoothed(noisy, 40.0)
    assert found.shape == (size,)
    assert found.sum() == pytest.approx(noisy.sum())
    assert np.abs(found - truth).sum() < 0.6 * np.abs(noisy - truth).sum()


def test_spikes_stay() -> None:
    truth = np.zeros(100)
    truth[[0, 50]] = 20_000, 3_000
    found = smoothed(truth + np.random.default_rng(0).normal(0, 30, 100), 30.0)
    assert np.abs(found - truth).max() < 150
    assert np.abs(found - truth).sum() < 30 * 100 * 0.8


def test_without_noise_nothing_changes() -> None:
    values = np.random.default_rng(1).normal(0, 100, 90)
    np.testing.assert_allclose(smoothed(values, 0.0), values, atol=1e-9)


def decimated(values: np.ndarray, sigma: float) -> np.ndarray:
    """Haar coefficients below the threshold set to 0, of a power of two of values."""
    if len(values) == 1:
        return values
    even, odd = values[0::2], values[1::2]
    detail = (even - odd) / np.sqrt(2)
    detail = np.where(np.abs(detail) > DEVIATIONS * sigma, detail, 0.0)
    mean = decimated((even + odd) / np.sqrt(2), sigma)
    return np.stack([(mean + detail) / np.sqrt(2), (mean - detail) / np.sqrt(2)], axis=1).reshape(-1)


@pytest.mark.parametrize("size", [33, 64, 100])
def test_it_is_the_mean_over_all_shifts_of_the_decimated_transform(size: int) -> None:
    values = np.random.default_rng(size).normal(100, 60, size)
    padded = np.pad(values, (0, 2 ** int(np.ceil(np.log2(2 * size))) - size), mode="symmetric")
    shifted = [np.roll(decimated(np.roll(padded, -s), 30.0), s) for s in range(len(padded))]
    mean = np.mean(shifted, axis=0)[:size]
    np.testing.assert_allclose(smoothed(values, 30.0), mean + (values.sum() - mean.sum()) / size, atol=1e-9)


def test_a_column_of_a_hundred_thousand_values_takes_little_memory() -> None:
    tracemalloc.start()
    smoothed(np.random.default_rng(2).normal(0, 10, 100_000), 10.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 2**20


@pytest.mark.parametrize("name", ["aim", "mst", "mwem", "privmrf", "mosaic"])
def test_ordered_columns_of_a_small_table_are_smoothed_by_every_algorithm(name: str) -> None:
    """Two uniform columns of 32 values, of which one has no order: over six runs the other's error is less
    than 0.7 of its."""
    algorithm, rng = ALGORITHMS[name], np.random.default_rng(3)
    values = 32
    domain = Domain(("ordered", "other"), (Codes(values), Categorical(tuple(f"v{i}" for i in range(values)))))
    codes = rng.integers(0, values, (300, 2))
    plan = algorithm.plan(
        domain,
        Workload.from_spec({"degree": 2}, domain),
        algorithm.config(),
        epsilon=0.5,
        delta=1e-6,
        adjacency="add-remove",
    )
    facts = StudyFacts(domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    errors = []
    for seed in range(6):
        noise = np.random.default_rng(seed).bytes
        oracle = IdealOracle(facts, counts_of(codes, domain), Accountant(plan.budget), noise)
        got = algorithm.run(oracle, plan, unobserved)
        shares = [got.model.marginal((column,)) / got.model.total for column in domain.names]
        errors.append([np.abs(of - 1 / values).sum() for of in shares])
    ordered, other = np.mean(errors, axis=0)
    assert ordered < 0.7 * other
