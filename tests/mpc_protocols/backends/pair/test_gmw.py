"""Products of shared bits, strings and numbers against plaintext; rounds and bytes to the unit; views; wrong
sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.circuits.gmw import and_bits, and_pairs, string_sums
from mpc_protocols.backends.pair.transfers import transfer_pool
from mpc_protocols.backends.pair.transfers.correlated import products
from mpc_protocols.backends.pair.transfers.ot_extension import PIECE, message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import BATCH, Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import from_bits, to_bits, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Words, extended, run_pair, share_ring, share_words
from tests.trio import Trio
from tests.worlds.words import random_words


def parity(words: list[Words]) -> Words:
    return words[0] ^ words[1]


@pytest.mark.parametrize("shape", [(1,), (5, 7), (2, 3, 65)])
def test_and(shape: tuple[int, ...]) -> None:
    x, y = random_words(*shape), random_words(*shape)
    xs, ys = share_words(x), share_words(y)
    ran = run_pair(lambda transfers: and_bits(transfers, xs[transfers.link.me], ys[transfers.link.me]))
    np.testing.assert_array_equal(parity(ran.results), x & y)
    words = int(np.prod(shape))
    assert ran.rounds == 2
    assert ran.sent == [message_bytes(words) + 16 * words] * 2


def test_the_preprocessing_of_an_and_is_less_than_the_bar_of_bytes() -> None:
    assert message_bytes(PIECE) / (64 * PIECE) == 3.125


def test_and_broadcasts_and_pairs_share_a_round() -> None:
    x, y, z = random_words(1, 4), random_words(3, 4), random_words(2, 4)
    xs, ys, zs = share_words(x), share_words(y), share_words(z)

    def body(transfers: Transfers) -> list[Words]:
        me = transfers.link.me
        return [
            and_bits(transfers, xs[me], ys[me]),
            *and_pairs(transfers, [(xs[me], xs[me]), (zs[me], ys[me][:2])]),
        ]

    ran = run_pair(body)
    for found, wanted in zip(zip(*ran.results, strict=True), (x & y, x, z & y[:2]), strict=True):
        np.testing.assert_array_equal(parity(list(found)), wanted)
    assert ran.rounds == 4


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_and_of_any_two_words(x: int, y: int) -> None:
    xs, ys = (share_words(np.array([v], np.uint64)) for v in (x, y))
    ran = run_pair(lambda transfers: and_bits(transfers, xs[transfers.link.me], ys[transfers.link.me]))
    assert int(parity(ran.results)[0]) == x & y


def test_local_operations_and_opening() -> None:
    x, public = random_words(3, 2), random_words(2)
    xs = share_words(x)

    def body(transfers: Transfers) -> list[Words]:
        gates, link = PairGates(transfers, bytes(32)), transfers.link
        mine = Bits(xs[link.me])
        return [
            link.combine(changed.parts[0], np.bitwise_xor)
            for changed in (gates.complement(mine), gates.xor_public(mine, public))
        ]

    ran = run_pair(body)
    for result in ran.results:
        np.testing.assert_array_equal(result[0], ~x)
        np.testing.assert_array_equal(result[1], x ^ public)
    assert (ran.rounds, ran.sent) == (2, [96, 96])


@pytest.mark.parametrize(("terms", "width", "words"), [(1, 1, 1), (4, 64, 3), (16, 80, 2), (3, 128, 1)])
def test_one_bit_with_a_string(terms: int, width: int, words: int) -> None:
    x, y = random_words(terms, words), random_words(terms, width, words)
    xs, ys = share_words(x), share_words(y)
    ran = run_pair(lambda transfers: string_sums(transfers, xs[transfers.link.me], ys[transfers.link.me]))
    wanted = np.bitwise_xor.reduce(x[:, np.newaxis] & y, axis=0)
    np.testing.assert_array_equal(parity(ran.results), wanted)
    assert ran.rounds == 2
    assert ran.sent == [message_bytes(terms * words) + 8 * terms * words * (1 + width)] * 2


def test_long_strings_take_several_messages() -> None:
    x, y = random_words(1, 8200), random_words(1, 2, 8200)
    xs, ys = share_words(x), share_words(y)
    ran = run_pair(lambda transfers: string_sums(transfers, xs[transfers.link.me], ys[transfers.link.me]))
    np.testing.assert_array_equal(parity(ran.results), x & y[0])
    assert ran.rounds == 4


@pytest.mark.parametrize("shape", [(1, 129, 1), (2, 4, 1)])
def test_strings_that_do_not_fit_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="do not select"):
        run_pair(lambda transfers: string_sums(transfers, random_words(1, 1), random_words(*shape)))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize(("rows", "cells"), [((1, 1), 1), ((2, 1), 63), ((0, 3), 65), ((1, 1), 1000)])
def test_bits_of_one_with_numbers_of_the_other(dtype: type, rows: tuple[int, int], cells: int) -> None:
    planes = [random_words(count, words_for(cells)) for count in rows]
    numbers: list[NDArray[Any]] = [random_words(rows[1 - me], cells).astype(dtype) for me in range(2)]
    ran = run_pair(
        lambda transfers: products(transfers, planes[transfers.link.me], numbers[transfers.link.me], cells)
    )
    for me in range(2):
        if rows[me]:
            found = ran.results[me][0] + ran.results[1 - me][1]
            np.testing.assert_array_equal(found, to_bits(planes[me], cells, dtype) * numbers[1 - me])
    size = np.dtype(dtype).itemsize
    words = words_for(cells)
    assert ran.rounds == 2
    assert ran.sent == [
        message_bytes(rows[me] * words) + 8 * rows[me] * words + size * rows[1 - me] * cells
        for me in range(2)
    ]


def test_a_reserve_makes_everything_at_once_and_is_used_up() -> None:
    x = share_words(random_words(6))

    def body(transfers: Transfers) -> None:
        transfers.reserve(Demand(bits=(12, 12), rows=(3, 3)))
        for _ in range(2):
            and_bits(transfers, x[transfers.link.me], x[transfers.link.me])
        string_sums(transfers, x[0][:3].reshape(3, 1), x[1][:3].reshape(3, 1, 1))

    ran = run_pair(body)
    assert ran.rounds == 1 + 3
    assert ran.sent == [message_bytes(15) + 2 * 96 + 48] * 2


def test_a_demand_beyond_a_batch_takes_a_round_more() -> None:
    def body(transfers: Transfers) -> None:
        transfers.reserve(Demand(bits=(BATCH + 1, 0)))
        transfers.reserve(Demand(bits=(BATCH + 1, 0)))

    ran = run_pair(body)
    assert ran.sent == [message_bytes(BATCH + 1), 0]
    assert ran.messages == [BATCH // PIECE + 1, 0]


def test_what_is_made_unasked_is_as_much_as_was_used_and_serves_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer_pool, "AHEAD_BITS", 6)
    words = share_words(random_words(10))

    def body(transfers: Transfers) -> list[tuple[int, int]]:
        wire, seen = transfers.link.wire, []
        for size in (2, 1, 1, 1, 1, 1, 10):
            before = wire.traffic()
            and_bits(transfers, words[transfers.link.me][:size], words[transfers.link.me][:size])
            after = wire.traffic()
            seen.append((after.rounds - before.rounds, after.bytes_sent - before.bytes_sent - 16 * size))
        return seen

    made = [(2, 2), (2, 2), (1, 0), (2, 4), (1, 0), (1, 0), (2, 9)]
    for seen in run_pair(body).results:
        assert seen == [(rounds, message_bytes(size)) for rounds, size in made]


def test_no_transfer_is_given_away_twice() -> None:
    def body(transfers: Transfers) -> list[Words]:
        transfers.reserve(Demand(bits=(4, 4)))
        parts = [transfers.chosen_bits(size).choices for size in (1, 2, 1, 3)]
        for size in (1, 2, 1, 3):
            transfers.offered_bits(size)
        return parts

    for parts in run_pair(body).results:
        drawn = np.concatenate(parts)
        assert len(np.unique(drawn)) == 7


Operation = Callable[[Transfers, int], object]


def _and(transfers: Transfers, bit: int) -> object:
    x = np.full(4096, -bit % (1 << 64), np.uint64)
    return and_bits(transfers, x, x)


def _string(transfers: Transfers, bit: int) -> object:
    x = np.full((4, 512), -bit % (1 << 64), np.uint64)
    return string_sums(transfers, x, np.broadcast_to(x[:, np.newaxis], (4, 8, 512)))


def _numbers(transfers: Transfers, bit: int) -> object:
    bits = np.full((1, 256), -bit % (1 << 64), np.uint64)
    return products(transfers, bits, np.full((1, 1 << 14), bit, np.uint32), 1 << 14)


@pytest.mark.parametrize("operation", [_and, _string, _numbers])
@pytest.mark.parametrize("bit", [0, 1])
def test_openings_are_uniform_whatever_is_multiplied(operation: Operation, bit: int) -> None:
    """At least 2^18 opened bits of constant inputs: a mean off by more than 0.007 has probability below
    10^-12."""
    ran = run_pair(lambda transfers: operation(transfers, bit))
    online = [frame.payload for frame in ran.frames if frame.clock == max(f.clock for f in ran.frames)]
    bits = np.unpackbits(np.frombuffer(b"".join(online), np.uint8))
    assert len(bits) >= 1 << 18
    assert abs(float(bits.mean()) - 0.5) < 0.007


def job(wire: Wire, x: Words, y: Words) -> Words:
    from mpc_protocols.backends.pair.link import Link

    transfers = Transfers.start(Link(wire))
    before = wire.traffic()
    product = and_bits(transfers, x, y)
    after = wire.traffic()
    assert after.rounds - before.rounds == 2
    assert after.bytes_sent - before.bytes_sent == message_bytes(x.size) + 16 * x.size
    return product


def test_and_between_two_processes(two: Trio) -> None:
    x, y = random_words(300), random_words(300)
    xs, ys = share_words(x), share_words(y)
    found = two.run(job, each=[(xs[i], ys[i]) for i in range(2)])
    np.testing.assert_array_equal(parity(found), x & y)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_opening_of_another_size_aborts(size: int) -> None:
    def liar(wire: Wire) -> None:
        transfers = Transfers(*extended(wire))
        transfers.reserve(Demand(bits=(1, 1)))
        wire.send(1, bytes(size))

    def honest(wire: Wire) -> None:
        and_bits(Transfers(*extended(wire)), random_words(1), random_words(1))

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(2, 2).run([liar, honest])


def test_shares_of_planes_and_flags_agree() -> None:
    bits = (np.arange(130) % 3 == 0).astype(np.uint32)
    assert len(share_ring(bits)) == 2
    np.testing.assert_array_equal(to_bits(parity(share_words(from_bits(bits))), 130), bits)
