"""Smoothing: less noise on smooth columns, spikes and sums kept, nothing done without noise."""

from __future__ import annotations

import numpy as np
import pytest

from synth.mosaic.smoothing import smoothed


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
