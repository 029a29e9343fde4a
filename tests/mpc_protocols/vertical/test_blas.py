"""Matrix products by exact limbs, against integers of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.vertical import blas

RINGS = [np.uint16, np.uint32]


def exact(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """a^T b in Python's integers, reduced at the end."""
    bits = 8 * a.dtype.itemsize
    product = a.astype(object).T @ b.astype(object)
    return np.array(product % (1 << bits), dtype=object).astype(a.dtype)


def uniform(shape: tuple[int, int], dtype: type, rng: np.random.Generator) -> NDArray[Any]:
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


@given(
    st.sampled_from(RINGS), st.integers(1, 300), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32)
)
@settings(max_examples=40, deadline=None)
def test_limbs_are_exact(dtype: type, rows: int, u: int, v: int, seed: int) -> None:
    """Random elements, and those on either side of the limbs' ranges."""
    rng = np.random.default_rng(seed)
    bits = np.iinfo(dtype).bits
    edges: NDArray[Any] = np.array(
        [(1 << s) + e & (1 << bits) - 1 for s in (0, 15, 16, 31) if s < bits for e in (-1, 0, 1)], dtype=dtype
    )
    a, b = uniform((rows, u), dtype, rng), uniform((rows, v), dtype, rng)
    a[rng.random(a.shape) < 0.4] = rng.choice(edges)
    b[rng.random(b.shape) < 0.4] = rng.choice(edges)
    np.testing.assert_array_equal(blas.transposed_product(a, b), exact(a, b))


@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("value", ["largest", "least", "middle"])
@pytest.mark.parametrize("b_bits", [None, 1, 8, 16, 17])
def test_sums_of_extreme_products_stay_exact(dtype: type, value: str, b_bits: int | None) -> None:
    """Many rows of the same worst element: the sums reach the bound of 2^53 within a block."""
    bits = np.iinfo(dtype).bits
    element = {"largest": (1 << bits - 1) - 1, "least": 1 << bits - 1, "middle": (1 << bits // 2) - 1}[value]
    rows = 9000
    a: NDArray[Any] = np.full((rows, 2), element, dtype)
    b: NDArray[Any] = np.full((rows, 3), element if b_bits is None else (1 << min(b_bits, bits)) - 1, dtype)
    expected = rows * int(a[0, 0]) * int(b[0, 0]) % (1 << bits)
    assert (blas.transposed_product(a, b, b_bits) == expected).all()


def test_matrices_that_do_not_fit() -> None:
    square = np.ones((3, 3), np.uint32)
    for other in (np.ones((4, 3), np.uint32), np.ones((3, 3), np.uint16), np.ones(3, np.uint32)):
        with pytest.raises(ValueError, match="as many rows"):
            blas.transposed_product(square, other)
    wide = np.ones((3, 3), np.uint64)
    with pytest.raises(ValueError, match="as many rows"):
        blas.transposed_product(wide, wide)
