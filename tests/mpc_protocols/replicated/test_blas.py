"""Matrix products: exact limbs against integers of any size, both protocols against plaintext, costs, what travels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.memory_wire import Frame
from mpc_protocols.replicated import blas, costs, matmul
from mpc_protocols.replicated.ring import RingShare
from mpc_protocols.replicated.trio import Trio
from tests.mpc_protocols.replicated.test_costs import check
from tests.mpc_protocols.replicated.trio_run import deal_ring, run_trio, total

RINGS = [np.uint16, np.uint32, np.uint64]


def exact(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """a^T b in Python's integers, reduced at the end."""
    bits = 8 * a.dtype.itemsize
    product = a.astype(object).T @ b.astype(object)
    return np.array(product % (1 << bits), dtype=object).astype(a.dtype)


def uniform(shape: tuple[int, int], dtype: type, rng: np.random.Generator) -> NDArray[Any]:
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


@given(st.sampled_from(RINGS), st.integers(1, 300), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_limbs_are_exact(dtype: type, rows: int, u: int, v: int, seed: int) -> None:
    """Random elements, and those on either side of the limbs' ranges."""
    rng = np.random.default_rng(seed)
    bits = np.iinfo(dtype).bits
    edges = np.array([(1 << s) + e & (1 << bits) - 1 for s in (0, 15, 16, 21, 22, 31, 43, 44, 63) if s < bits
                      for e in (-1, 0, 1)], dtype=dtype)
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
    a = np.full((rows, 2), element, dtype)
    b = np.full((rows, 3), element if b_bits is None else (1 << min(b_bits, bits)) - 1, dtype)
    expected = rows * int(a[0, 0]) * int(b[0, 0]) % (1 << bits)
    assert (blas.transposed_product(a, b, b_bits) == expected).all()


def test_matrices_that_do_not_fit() -> None:
    square = np.ones((3, 3), np.uint32)
    for other in (np.ones((4, 3), np.uint32), np.ones((3, 3), np.uint64), np.ones(3, np.uint32)):
        with pytest.raises(ValueError, match="as many rows"):
            blas.transposed_product(square, other)
        if other.ndim == 2:
            with pytest.raises(ValueError, match="as many rows"):
                run_trio(lambda trio, other=other: matmul.matmul(  # type: ignore[misc]
                    trio, RingShare(square, square), RingShare(other, other)))


@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("rows", [1, 50, 700])
def test_product_of_shared_matrices(monkeypatch: pytest.MonkeyPatch, dtype: type, rows: int) -> None:
    monkeypatch.setattr(matmul, "ROWS", 64)
    rng = np.random.default_rng(rows)
    a, b = uniform((rows, 4), dtype, rng), uniform((rows, 7), dtype, rng)
    shares_a, shares_b = deal_ring(a, rng), deal_ring(b, rng)
    results, _ = run_trio(lambda trio: matmul.matmul(trio, shares_a[trio.me], shares_b[trio.me]))
    np.testing.assert_array_equal(total(results), exact(a, b))
    size = np.dtype(dtype).itemsize
    check(lambda trio: matmul.matmul(trio, shares_a[trio.me], shares_b[trio.me]), lambda t: costs.matmul(t, (4, 7), size), 1)


@pytest.mark.parametrize("owners", [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("rows", [1, 300])
def test_product_of_two_owners_matrices(monkeypatch: pytest.MonkeyPatch, owners: tuple[int, int], dtype: type, rows: int) -> None:
    """Full-range A, one-hot B; several blocks and waves; costs as predicted, the helper sends and gets the result only."""
    monkeypatch.setattr(matmul, "ROWS", 32)
    monkeypatch.setattr(matmul, "WAVE", 64 * 6 * np.dtype(dtype).itemsize)
    rng = np.random.default_rng(rows)
    a = uniform((rows, 6), dtype, rng)
    b = (rng.integers(0, 5, rows)[:, np.newaxis] == np.arange(5)).astype(np.uint8)
    frames: list[Frame] = []

    def body(trio: Trio) -> RingShare:
        mine = {owners[0]: a, owners[1]: b}.get(trio.me)
        return matmul.owned_matmul(trio, owners, mine, rows, (6, 5), dtype, 1)

    results, _ = run_trio(body, tap=frames.append)
    np.testing.assert_array_equal(total(results), exact(a, b.astype(dtype)))
    size = np.dtype(dtype).itemsize
    check(body, lambda t: costs.owned_matmul(t, owners, rows, (6, 5), size), 2)
    helper = 3 - sum(owners)
    assert [len(frame.payload) for frame in frames if helper in (frame.sender, frame.receiver)] == [30 * size] * 2


def test_masked_rows_look_random() -> None:
    """A matrix of zeros travels as bytes that do not repeat: 4,000 words of 64 bits, a chance of 1e-12 of any pair."""
    frames: list[Frame] = []
    zeros = np.zeros((400, 10), np.uint64)
    run_trio(lambda trio: matmul.owned_matmul(trio, (0, 1), zeros if trio.me < 2 else None, 400, (10, 10), np.uint64),
             tap=frames.append)
    words = [word for frame in frames for word in np.frombuffer(frame.payload, np.uint64).tolist()]
    assert len(words) == 8300 and len(set(words)) == len(words)


@pytest.mark.parametrize(("owners", "mine"), [((0, 0), None), ((0, 3), None), ((0, 1), np.ones((4, 2), np.uint32)),
                                              ((0, 1), np.ones((3, 2)))])
def test_owners_bring_what_was_announced(owners: tuple[int, int], mine: NDArray[Any] | None) -> None:
    with pytest.raises(ValueError):
        run_trio(lambda trio: matmul.owned_matmul(trio, owners, mine, 3, (2, 2), np.uint32))
