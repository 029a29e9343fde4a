"""Log-space factors against the same algebra on plain weights, and at the ends of the number range."""

from __future__ import annotations

import numpy as np
import pytest

from synth.mrf.factor import Factor

RNG = np.random.default_rng(5)


def _random(columns: tuple[str, ...], **sizes: int) -> Factor:
    return Factor(columns, RNG.normal(0, 2, [sizes[name] for name in columns]))


def test_product_sum_and_projection_agree_with_einsum_on_weights() -> None:
    sizes = {"a": 2, "b": 3, "c": 4}
    first, second = _random(("b", "a"), **sizes), _random(("c", "b"), **sizes)
    product = first * second
    weights = np.einsum("ba,cb->bac", np.exp(first.values), np.exp(second.values))
    assert product.columns == ("b", "a", "c")
    np.testing.assert_allclose(np.exp(product.values), weights, rtol=1e-12)
    np.testing.assert_allclose(np.exp(product.sum_out({"b"}).values), weights.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.exp(product.project(("c", "a")).values), weights.sum(axis=0).T, rtol=1e-12)
    np.testing.assert_allclose(np.exp(product.project(()).values), weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("shift", [-1e5, -800.0, 0.0, 800.0, 1e5])
def test_weights_of_any_magnitude_are_summed(shift: float) -> None:
    factor = Factor(("a", "b"), np.array([[0.0, 1.0], [-2000.0, 2.0]]) + shift)
    np.testing.assert_allclose(factor.project(("a",)).values - shift, [np.log1p(np.e), 2.0], rtol=1e-9)


def test_a_row_of_zero_weight_sums_to_zero_not_to_nan() -> None:
    factor = Factor(("a", "b"), np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))
    assert factor.project(("a",)).values.tolist() == [-np.inf, 0.0]


def test_a_factor_needs_one_axis_per_column() -> None:
    with pytest.raises(ValueError, match="needs 2 axes, got 1"):
        Factor(("a", "b"), np.zeros(3))
    with pytest.raises(ValueError, match="needs 2 axes"):
        Factor(("a", "a"), np.zeros((3, 3)))
