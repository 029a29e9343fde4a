"""Each operation of two parties and a dealer against plaintext, at the extremes of what it may be given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import to_bits
from tests.mpc_protocols.backends.additive.dealt_run import (
    DEALER,
    run_three,
    share_flags,
    share_ring,
    share_words,
)
from tests.worlds.words import random_words

pytestmark = pytest.mark.usefixtures("crypten")


@pytest.mark.parametrize(
    ("left", "right"), [((5,), (5,)), ((1, 3), (9, 3)), ((4, 2, 3), (2, 3)), ((2, 0), (2, 0))]
)
def test_and_broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = random_words(*left), random_words(*right)
    xs, ys = share_words(x), share_words(y)

    def body(gates: AdditiveGates) -> NDArray[np.uint64]:
        me = gates.link.me
        return gates.and_bits(Bits(xs[me]), Bits(ys[me])).parts[0]

    ran = run_three(body)
    np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], x & y)
    assert not ran.results[DEALER].any()


def test_pairs_travel_together() -> None:
    pairs = [(random_words(n, 3), random_words(n, 3)) for n in (1, 4, 2)]
    shares = [(share_words(x), share_words(y)) for x, y in pairs]

    def body(gates: AdditiveGates) -> list[NDArray[np.uint64]]:
        me = gates.link.me
        products = gates.and_pairs([(Bits(xs[me]), Bits(ys[me])) for xs, ys in shares])
        return [product.parts[0] for product in products]

    ran = run_three(body)
    for mine, others, (x, y) in zip(*ran.results[:DEALER], pairs, strict=True):
        np.testing.assert_array_equal(mine ^ others, x & y)
    assert ran.rounds == 1 and [of.messages_sent for of in ran.traffic] == [1, 1, 1]


def test_sums_of_linear_functions_cost_the_bits_of_their_operands() -> None:
    """Two runs of terms at other words; each term's factor is another XOR of planes of y."""
    chosen = np.random.default_rng().integers(0, 2, (2, 3, 4, 5), np.uint8)
    x, y = random_words(4, 6), random_words(5, 6)
    xs, ys = share_words(x), share_words(y)
    places = [slice(0, 2), slice(2, 6)]

    def images(y: NDArray[np.uint64], rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
        masks = np.negative(rows.astype(np.uint64))[..., np.newaxis]
        found: NDArray[np.uint64] = np.bitwise_xor.reduce(masks & y, axis=2)
        return found

    def body(gates: AdditiveGates) -> NDArray[np.uint64]:
        me = gates.link.me
        factor = gates.factor(Bits(ys[me]))

        def terms() -> Iterator[tuple[tuple[slice, slice], Bits, Iterator[NDArray[np.uint64]]]]:
            for place in places:
                for number, rows in enumerate((slice(0, 3), slice(3, 6))):
                    parts = (images(part[:, place], chosen[number]) for part in factor.parts)
                    yield (rows, place), Bits(xs[me][:, place]), parts

        return gates.and_sums((6, 6), terms()).parts[0]

    ran = run_three(body)
    wanted = np.concatenate([images(y, rows) for rows in chosen]) & x
    np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], np.bitwise_xor.reduce(wanted, axis=1))
    assert [of.bytes_sent for of in ran.traffic] == [8 * (30 + 24)] * 2 + [8 * 36] and ran.rounds == 3


@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
@pytest.mark.parametrize("cells", [1, 64, 65, 1000])
def test_bits_become_integers(cells: int, ring: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc_protocols.backends.additive.dealing.operations.BITS_AT_ONCE", 130)
    bits = np.random.default_rng().integers(0, 2, (3, cells), np.uint8)
    shares, weights = share_flags(bits), [5, -7, 1 << 31]
    ran = run_three(lambda gates: gates.weighted_sum(Bits(shares[gates.link.me]), weights, cells, ring))
    wanted = np.array([weight % (1 << 64) for weight in weights], np.uint64) @ bits.astype(np.uint64)
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], wanted.astype(ring))


@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
def test_products_are_those_of_the_ring(ring: type) -> None:
    top = np.iinfo(ring).max
    x: NDArray[Any] = np.array([0, 1, top, top, 3, top // 2], ring)
    y: NDArray[Any] = np.array([top, 0, top, 1, 5, 2], ring)
    xs, ys = share_ring(x), share_ring(y)
    ran = run_three(lambda gates: gates.operations.products(xs[gates.link.me], ys[gates.link.me]))
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], x * y)


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
@pytest.mark.parametrize("planes", [2, 3, 18, 31, 32])
def test_absolute_values_at_their_bounds(planes: int, latency_bytes: int) -> None:
    most = (1 << planes - 1) - 1
    values = np.array([0, 1, -1, most, -most, *np.random.default_rng().integers(-most, most + 1, 60)])
    shares = share_ring(values.astype(np.uint32))
    ran = run_three(lambda gates: gates.absolute(shares[gates.link.me], planes), latency_bytes)
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], np.abs(values).astype(np.uint32))


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
def test_sums_are_widened(latency_bytes: int) -> None:
    values = np.array([0, 1, (1 << 32) - 1, 1 << 31, *np.random.default_rng().integers(0, 1 << 32, 61)])
    shares = share_ring(values.astype(np.uint32))
    ran = run_three(lambda gates: gates.widened(shares[gates.link.me]), latency_bytes)
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], values.astype(np.uint64))


@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
def test_comparisons(ring: type) -> None:
    top = (1 << np.dtype(ring).itemsize * 8 - 2) - 1
    x, y = np.array([0, 0, -top, top, 5, -5]), np.array([0, 1, top, -top, 5, -6])
    xs, ys = share_ring(x.astype(ring)), share_ring(y.astype(ring))
    ran = run_three(lambda gates: gates.less(xs[gates.link.me], ys[gates.link.me]).parts[0])
    found = to_bits(ran.results[0] ^ ran.results[1], len(x)).astype(bool)
    np.testing.assert_array_equal(found, x < y)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3, 70), (2, 40, 3)])
def test_which_rows_are_zero(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc_protocols.engine.parts.gates.TESTED_AT_ONCE", 32)
    rng = np.random.default_rng()
    bits = rng.integers(0, 2, shape, np.uint8) * rng.integers(0, 2, (*shape[:2], 1), np.uint8)
    mask = rng.integers(0, 2, shape, np.uint8)
    shares, half = [mask, bits ^ mask, np.zeros_like(mask)], (shape[1] + 1) // 2

    def body(gates: AdditiveGates) -> NDArray[np.bool_]:
        mine = shares[gates.link.me]
        blocks = [slice(0, half), slice(half, shape[1])]
        return gates.zero_rows(shape[:2], ((block, Bits(mine[:, block])) for block in blocks))

    for found in run_three(body).results:
        np.testing.assert_array_equal(found, ~bits.any(axis=2))


def test_public_bits_are_applied_once() -> None:
    x, public = random_words(3), random_words(2, 3)
    xs = share_words(x)

    def body(gates: AdditiveGates) -> NDArray[np.uint64]:
        mine = Bits(xs[gates.link.me])
        return (gates.xor_public(mine, public) ^ gates.complement(mine)).parts[0]

    ran = run_three(body)
    np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], ~public)
