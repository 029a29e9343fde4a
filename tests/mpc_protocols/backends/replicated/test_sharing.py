"""Planes, rings, bits and signs against plaintext, on random and extreme values, with all share components
random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.replicated.scores.shared_sign import shared_signs
from mpc_protocols.backends.replicated.sharing import boolean, ring, sign
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import from_bits, from_planes, to_bits, to_planes, words_for
from mpc_protocols.in_memory.blank_network import BlankNetwork
from tests.mpc_protocols.backends.replicated.trio_run import (
    blanks,
    deal_bits,
    deal_flags,
    deal_ring,
    parity,
    run_trio,
    spread,
    to_values,
    total,
)

RINGS = [np.uint16, np.uint32, np.uint64]
SIZES = [1, 63, 64, 65, 1000]


@given(
    st.integers(1, 300),
    st.integers(0, 2**32),
    st.sampled_from([(np.uint32, 32), (np.uint32, 17), (np.uint64, 20), (np.uint64, 40), (np.uint64, 64)]),
)
@settings(max_examples=40, deadline=None)
def test_planes_hold_the_bits(cells: int, seed: int, kind: tuple[type, int]) -> None:
    dtype, planes = kind
    rng = np.random.default_rng(seed)
    values = rng.integers(0, np.iinfo(dtype).max, cells, dtype=dtype, endpoint=True)
    sliced = to_planes(values, planes)  # type: ignore[arg-type]
    assert sliced.shape == (planes, words_for(cells))
    for j in (0, planes // 2, planes - 1):
        np.testing.assert_array_equal(to_bits(sliced[j], cells), (values >> dtype(j)) & dtype(1))
        np.testing.assert_array_equal(from_bits((values >> dtype(j)) & dtype(1)), sliced[j])
    np.testing.assert_array_equal(
        to_values(sliced, cells), values.astype(np.uint64) & np.uint64(2**planes - 1)
    )
    np.testing.assert_array_equal(from_planes(sliced[:32], cells), to_values(sliced[:32], cells))
    apart = np.zeros((planes, 2 * words_for(cells)), np.uint64)
    to_planes(values, planes, apart[:, 1 : 1 + words_for(cells)])  # type: ignore[arg-type]
    np.testing.assert_array_equal(apart[:, 1 : 1 + words_for(cells)], sliced)


@pytest.mark.parametrize(("dtype", "planes"), [(np.uint16, 17), (np.uint32, 33), (np.uint64, 65)])
def test_rings_have_no_more_planes_than_bits(dtype: type, planes: int) -> None:
    with pytest.raises(ValueError, match=f"no {planes} bit planes"):
        to_planes(np.ones(3, dtype), planes)


def test_planes_of_a_batch_larger_than_one_piece() -> None:
    values = np.random.default_rng(3).integers(0, 2**32, 300_001, dtype=np.uint32)
    np.testing.assert_array_equal(to_values(to_planes(values, 32), len(values)), values)
    np.testing.assert_array_equal(from_planes(to_planes(values, 32), len(values)), values)


@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("cells", SIZES)
def test_ring_operations(dtype: type, cells: int) -> None:
    rng = np.random.default_rng(cells)
    top = int(np.iinfo(dtype).max)
    x = rng.integers(0, top, cells, dtype=dtype, endpoint=True)
    y = rng.integers(0, top, cells, dtype=dtype, endpoint=True)
    x[0], y[-1] = top, top
    shares_x, shares_y = deal_ring(x, rng), deal_ring(y, rng)
    lengths = np.array([0, cells // 3, 0, cells - cells // 3, 0])
    factors = rng.integers(-1000, 1000, cells)

    def body(trio: Trio) -> list[ring.RingShare]:
        mine, other = shares_x[trio.me], shares_y[trio.me]
        np.testing.assert_array_equal(ring.open_ring(trio, mine), x)
        return [
            ring.multiply(trio, mine, other),
            ring.replicated(trio, ring.dot_parts(mine, other)).reshape(1),
            ring.segment_sums(mine, lengths),
            mine - other + mine,
            mine.scaled(factors),
            ring.add_public(trio, mine, factors),
            ring.share_own(trio, x),  # type: ignore[arg-type]
            ring.share_from(trio, 2, y if trio.me == 2 else None, cells, dtype),  # type: ignore[arg-type]
            ring.reshare(trio, mine.own),
        ]

    results, _ = run_trio(body)
    edge = cells // 3
    expected = [
        x * y,
        np.array([(x * y).sum(dtype=dtype)]),
        np.array([0, x[:edge].sum(dtype=dtype), 0, x[edge:].sum(dtype=dtype), 0], dtype),
        x - y + x,
        x * factors.astype(dtype),
        x + factors.astype(dtype),
        dtype(3) * x,
        y,
        x,
    ]
    for position, value in enumerate(expected):
        np.testing.assert_array_equal(total([result[position] for result in results]), value)


def test_centred_reads_signed_values() -> None:
    narrow = np.array([0, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    np.testing.assert_array_equal(ring.centred(narrow), [0, 2**31 - 1, -(2**31), -1])
    np.testing.assert_array_equal(ring.centred(np.array([1, 2**64 - 5], np.uint64)), [1, -5])


@pytest.mark.parametrize("words", [1, 2, 17])
def test_boolean_operations(words: int) -> None:
    rng = np.random.default_rng(words)
    x, y = rng.integers(0, 2**64 - 1, (2, 3, words), dtype=np.uint64, endpoint=True)
    x[0], y[0, 0] = 2**64 - 1, 2**64 - 1
    shares_x, shares_y, row = deal_bits(x, rng), deal_bits(y, rng), deal_bits(y[0], rng)
    public = y[1]

    def body(trio: Trio) -> list[boolean.BitShare]:
        mine, other = shares_x[trio.me], shares_y[trio.me]
        np.testing.assert_array_equal(boolean.open_bits(trio, mine), x)
        return [
            mine ^ other,
            boolean.and_bits(trio, mine, other),
            boolean.and_bits(trio, mine, row[trio.me]),
            boolean.complement(trio, mine),
            boolean.xor_public(trio, mine, public),
            boolean.and_public(mine, public),
        ]

    results, _ = run_trio(body)
    for position, value in enumerate([x ^ y, x & y, x & y[0], ~x, x ^ public, x & public]):
        np.testing.assert_array_equal(parity([result[position] for result in results]), value)


@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("adder", ["ripple", "tree"])
@pytest.mark.parametrize("planes", [2, 3, 5, 9, 17, 24, 31, 32, 63, 64])
def test_signs(dtype: type, adder: Adder, planes: int) -> None:
    if planes > np.iinfo(dtype).bits:
        pytest.skip("more planes than the ring has bits")
    rng = np.random.default_rng(planes)
    for cells in SIZES:
        values = spread(cells, 2 ** (planes - 1) - 1, rng)
        shares = deal_ring(values.astype(dtype), rng)
        results, _ = run_trio(lambda trio, shares=shares: sign.signs(trio, shares[trio.me], planes, adder))  # type: ignore[misc]
        np.testing.assert_array_equal(to_bits(parity(results), cells), values < 0)


@pytest.mark.parametrize(
    "components", [(0, 0, 0), (2**32 - 1, 1, 0), (2**31, 2**31, 2**32 - 1), (1, 2**32 - 1, 2**31)]
)
def test_signs_of_extreme_components(components: tuple[int, int, int]) -> None:
    held = [np.array([c], np.uint32) for c in components]
    value = np.int32((sum(components) + 2**31) % 2**32 - 2**31)
    for adder in ("ripple", "tree"):
        results, _ = run_trio(
            lambda trio, adder=adder: sign.signs(  # type: ignore[misc]
                trio, ring.RingShare(held[trio.me], held[trio.right]), 32, adder
            )
        )
        assert to_bits(parity(results), 1)[0] == (value < 0)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("cells", [1, 64, 65, 130, 1000])
def test_signs_by_three_dealers(dtype: type, cells: int) -> None:
    """Shares of the signs, each party being the dealer of a third of the words, or of none."""
    planes, rng = np.iinfo(dtype).bits, np.random.default_rng(cells)
    values = spread(cells, 2 ** (planes - 1) - 1, rng)
    shares = deal_ring(values.astype(dtype), rng)
    results, traffic = run_trio(lambda trio: shared_signs(trio, shares[trio.me], planes))
    np.testing.assert_array_equal(to_bits(parity(results), cells), values < 0)
    derived = run_trio(
        lambda trio: shared_signs(trio, blanks(shares)[trio.me], planes), network=BlankNetwork(3)
    )[1]
    assert traffic == derived and max(of.rounds for of in traffic) <= 4 + (planes == 64)


def test_flags_roundtrip_through_shares() -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2, (3, 70))
    shares = deal_flags(bits, rng)
    np.testing.assert_array_equal(to_bits(parity(shares), 70), bits)
