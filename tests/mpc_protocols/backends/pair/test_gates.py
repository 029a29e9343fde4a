"""The shared draws and arg max over two parties' gates: bit for bit the references, whatever a round is
worth."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.argmax import argmax_in_groups, in_groups
from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bits import Bits
from tests.mpc_protocols.backends.pair.pair_run import Ran, run_pair, share_ring, share_words
from tests.worlds import noise
from tests.worlds.words import random_words

MANY_BYTES = 1 << 24


def gates_of(transfers: Transfers, latency_bytes: int = 1 << 16, secret: bytes | None = None) -> PairGates:
    transfers.link.latency_bytes = latency_bytes
    return PairGates(transfers, secret or bytes([transfers.link.me]) * 32)


def numbers(
    ran: Ran[tuple[NDArray[np.uint32], list[NDArray[np.uint64]]]], cells: int
) -> tuple[list[int], list[list[int]]]:
    """The drawn integers, and per call the uniform number of every cell, from what both parties drew."""
    drawn = (ran.results[0][0] + ran.results[1][0]).view(np.int32).tolist()
    both = zip(ran.results[0][1], ran.results[1][1], strict=True)
    return drawn, [noise.uniforms(mine ^ others, cells) for mine, others in both]


def drawn_by_two(
    draw: Callable[[Any, Any], Any], cells: int, latency_bytes: int = 1 << 16
) -> tuple[list[int], list[list[int]]]:
    """As `noise.Draws`."""

    def body(transfers: Transfers) -> tuple[NDArray[np.uint32], list[NDArray[np.uint64]]]:
        gates, bits = gates_of(transfers, latency_bytes), list[Bits]()
        made = draw(gates, noise.noted(gates, bits))
        return made, [each.parts[0] for each in bits]

    return numbers(run_pair(body), cells)


@pytest.mark.parametrize("cells", [1, 65])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_gumbel_noise_is_the_reference(cells: int, latency_bytes: int) -> None:
    noise.check_gumbels(partial(drawn_by_two, latency_bytes=latency_bytes), cells)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(10), Fraction(317, 10)])
def test_gaussian_noise_is_the_reference(sigma: Fraction) -> None:
    noise.check_gaussians(drawn_by_two, sigma)


def test_a_release_repeats_its_bits_and_nothing_else_does() -> None:
    def body(transfers: Transfers) -> list[NDArray[np.uint64]]:
        gates = gates_of(transfers)
        sources = [gates.release_bits(name) for name in (b"one", b"one", b"two")]
        return [
            sources[0]((2,)).parts[0],
            sources[1]((2,)).parts[0],
            sources[2]((2,)).parts[0],
            sources[0]((2,)).parts[0],
        ]

    for first, again, other, later in run_pair(body).results:
        np.testing.assert_array_equal(first, again)
        assert not (first == other).any() and not (first == later).any()


def test_random_bits_come_from_both_parties() -> None:
    def draw(transfers: Transfers, other: int) -> NDArray[np.uint64]:
        secret = bytes([7]) * 32 if transfers.link.me == 0 else bytes([other]) * 32
        return gates_of(transfers, secret=secret).release_bits(b"release")((4,)).parts[0]

    runs = [run_pair(lambda transfers, other=other: draw(transfers, other)).results for other in (1, 2)]  # type: ignore[misc]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert not (runs[0][1] == runs[1][1]).any()


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_the_largest_key_wins_and_the_first_of_equal_ones(
    count: int, dtype: type, latency_bytes: int
) -> None:
    size = np.dtype(dtype).itemsize
    top = (1 << 8 * size - 2) - 1
    rows = np.random.default_rng().integers(-top, top, (4, count), endpoint=True)
    rows[1] = -5
    rows[2, count // 2 :] = top
    rows[3, -1] = top
    shares = share_ring(rows.astype(dtype))
    ran = run_pair(
        lambda transfers: argmax_rows(gates_of(transfers, latency_bytes), shares[transfers.link.me])  # type: ignore[type-var]
    )
    for found in ran.results:
        assert found.tolist() == rows.argmax(axis=1).tolist()


@pytest.mark.parametrize("count", [65, 128, 130])
def test_groups_find_the_same(count: int) -> None:
    for rows in (np.random.default_rng().integers(-1000, 1000, count), np.full(count, -3), np.arange(count)):
        shares = share_ring(rows.astype(np.uint32))
        ran = run_pair(
            lambda transfers, shares=shares: argmax_in_groups(  # type: ignore[misc]
                gates_of(transfers), shares[transfers.link.me]
            )
        )
        assert ran.results == [int(rows.argmax())] * 2


def test_many_candidates_are_compared_in_groups() -> None:
    assert not in_groups(64, 4, 1 << 16) and not in_groups(2000, 4, 1 << 40)
    assert in_groups(2000, 4, 1 << 16)


def test_one_plane_with_several_is_one_string() -> None:
    x, y = random_words(1, 3), random_words(9, 3)
    xs, ys = share_words(x), share_words(y)

    def body(transfers: Transfers) -> NDArray[np.uint64]:
        me = transfers.link.me
        return gates_of(transfers).and_bits(Bits(xs[me]), Bits(ys[me])).parts[0]

    ran = run_pair(body)
    np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], x & y)
    assert ran.sent[0] == message_bytes(3) + 8 * 3 * 10


def test_sums_of_products_are_put_together_by_their_words() -> None:
    x, y = random_words(4, 6), random_words(10, 4, 6)
    xs, ys = share_words(x), share_words(y)

    def body(transfers: Transfers) -> NDArray[np.uint64]:
        me, gates = transfers.link.me, gates_of(transfers)
        terms = [
            (
                (slice(row, row + 5), slice(word, word + 3)),
                Bits(xs[me][:, word : word + 3]),
                gates.factor(Bits(ys[me][row : row + 5, :, word : word + 3])).parts,
            )
            for word in (0, 3)
            for row in (0, 5)
        ]
        return gates.and_sums((10, 6), terms).parts[0]

    ran = run_pair(body)
    np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], np.bitwise_xor.reduce(x & y, axis=1))
    assert ran.sent[0] == 2 * (message_bytes(12) + 8 * 12 * 11)


def test_public_numbers_are_added_once() -> None:
    values = np.array([5, 2**32 - 1], np.uint32)
    shares = share_ring(values)

    def body(transfers: Transfers) -> NDArray[np.uint32]:
        gates = gates_of(transfers)
        mine = shares[transfers.link.me]
        return gates.concatenate([gates.add_public(mine, np.array([-6, 3])), mine + mine])

    ran = run_pair(body)
    assert (ran.results[0] + ran.results[1]).tolist() == [2**32 - 1, 2, 10, 2**32 - 2]
