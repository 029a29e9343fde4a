"""Signs, sums of |x|, the zero test, bits to integers and wider rings, against plaintext; rounds and bytes to
the unit."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits import sign
from mpc_protocols.backends.pair.circuits.conversion import lift, weighted_sum
from mpc_protocols.backends.pair.circuits.l1_distance import l1_sums
from mpc_protocols.backends.pair.circuits.sign import (
    AND_BYTES,
    carry_demand,
    carry_fields,
    merges,
    score_adder,
    signs,
)
from mpc_protocols.backends.pair.circuits.zero_test import zero_cells
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import to_bits, words_for
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import extended, run_pair, share_flags, share_ring
from tests.mpc_protocols.backends.replicated.vertical.test_memory import TurnTaking

SIZES = (1, 63, 64, 65, 1000)
WIDTHS = (2, 3, 6, 7, 18, 31, 32)


def spread(cells: int, planes: int) -> NDArray[np.int64]:
    """Integers of so many planes, the extremes first."""
    top = (1 << planes - 1) - 1
    values = np.random.default_rng().integers(-top, top, cells, endpoint=True)
    extremes = np.array([top, -top, 0, 1, -1, -top - 1])[:cells]
    values[: len(extremes)] = np.clip(extremes, -top - 1, top)
    return values


def carry_bytes(me: int, planes: int, cells: int, adder: Adder) -> int:
    """What a party sends for a carry besides transfers: bits of the fields it asks, tables of the others, two
    bits an AND."""
    fields = carry_fields(planes)
    asked = sum(of.table.bits for of in fields if of.chooser == me)
    tables = sum(np.dtype(of.table.dtype).itemsize for of in fields if of.chooser != me)
    return 8 * words_for(cells) * (asked + 2 * sum(merges(len(fields), adder))) + cells * tables


def carry_rounds(planes: int, adder: Adder) -> int:
    """Transfers, questions, tables, ANDs; of one field the chooser sends transfers and questions without
    waiting."""
    fields = len(carry_fields(planes))
    return (3 if fields > 1 else 2) + len(merges(fields, adder))


def test_a_byte_of_ands_counts_three_times() -> None:
    """Of four fields the tree saves a round, for one plane of ANDs more."""
    assert [len(merges(4, adder)) for adder in ("ripple", "tree")] == [3, 2]
    assert [sum(merges(4, adder)) for adder in ("ripple", "tree")] == [3, 4]
    planes = next(planes for planes in WIDTHS if len(carry_fields(planes - 1)) == 4)
    even = 3 * 10 * AND_BYTES
    assert [score_adder(planes, 10, even + more) for more in (-1, 1)] == ["ripple", "tree"]


@pytest.mark.parametrize("adder", ["ripple", "tree"])
@pytest.mark.parametrize("planes", WIDTHS)
@pytest.mark.parametrize("cells", SIZES)
def test_signs(cells: int, planes: int, adder: Adder) -> None:
    values = spread(cells, planes)
    shares = share_ring(values.astype(np.uint32))
    ran = run_pair(lambda transfers: signs(transfers, shares[transfers.link.me], planes, adder))
    np.testing.assert_array_equal(to_bits(ran.results[0] ^ ran.results[1], cells), values < 0)
    demand = carry_demand(planes - 1, words_for(cells), adder)
    assert ran.rounds == carry_rounds(planes - 1, adder)
    assert ran.sent == [
        message_bytes(sum(demand.of(me))) + carry_bytes(me, planes - 1, cells, adder) for me in range(2)
    ]


@pytest.mark.parametrize("adder", ["ripple", "tree"])
@pytest.mark.parametrize("planes", [2, 18, 32])
@pytest.mark.parametrize("cells", SIZES)
def test_sums_of_absolute_values(cells: int, planes: int, adder: Adder) -> None:
    values = spread(cells, planes)
    lengths = np.array([0, cells // 3, cells - cells // 3, 0])
    shares = share_ring(values.astype(np.uint32))
    ran = run_pair(lambda transfers: l1_sums(transfers, shares[transfers.link.me], lengths, planes, adder))
    ends = np.cumsum(lengths)
    wanted = [
        int(np.abs(values[end - n : end]).sum()) % (1 << 32) for n, end in zip(lengths, ends, strict=True)
    ]
    assert (ran.results[0] + ran.results[1]).tolist() == wanted
    words = words_for(cells)
    demand = carry_demand(planes - 1, words, adder)
    assert ran.sent == [
        message_bytes(sum(demand.of(me)) + words)
        + carry_bytes(me, planes - 1, cells, adder)
        + 8 * words
        + 4 * cells
        for me in range(2)
    ]


def test_many_cells_are_computed_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "CHUNK", 128)
    values = spread(250, 10)
    shares = share_ring(values.astype(np.uint32))
    lengths = np.array([150, 100])
    ran = run_pair(lambda transfers: l1_sums(transfers, shares[transfers.link.me], lengths, 10, "ripple"))
    assert (ran.results[0] + ran.results[1]).tolist() == [
        np.abs(values[:150]).sum(),
        np.abs(values[150:]).sum(),
    ]


@pytest.mark.parametrize("cells", [128, 129, 1000, 1024])
def test_signs_of_many_cells_are_those_of_their_pieces(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "CHUNK", 128)
    values = spread(cells, 12)
    shares = share_ring(values.astype(np.uint32))
    ran = run_pair(lambda transfers: signs(transfers, shares[transfers.link.me], 12, "ripple"))
    np.testing.assert_array_equal(to_bits(ran.results[0] ^ ran.results[1], cells), values < 0)
    assert ran.rounds == -(-cells // 128) * carry_rounds(11, "ripple")


@pytest.mark.parametrize("cells", [128, 129, 1000])
def test_many_cells_are_lifted_chunk_by_chunk(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "CHUNK", 128)
    values = np.random.default_rng().integers(0, 1 << 16, cells).astype(np.uint16)
    shares = share_ring(values)
    ran = run_pair(lambda transfers: lift(transfers, shares[transfers.link.me], np.uint32))
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], values)


def peak(body: Callable[[Transfers], object]) -> int:
    """Bytes allocated at most by both parties together, from the base transfers on."""
    network = TurnTaking(2, computing=2)

    def party(wire: Wire) -> None:
        network.wait(wire.me)
        body(Transfers(*extended(wire)))

    gc.collect()
    tracemalloc.start()
    try:
        network.run([party] * 2)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_many_signs_and_wide_lifts_is_that_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside 40 bytes a cell of the two parties for what goes in and comes out; a chunk takes more than 200
    of each."""
    monkeypatch.setattr(sign, "CHUNK", 1 << 12)
    x = np.zeros(1 << 15, np.uint32)

    def compute(cells: int) -> Callable[[Transfers], object]:
        return lambda transfers: (signs(transfers, x[:cells], 32, "tree"), lift(transfers, x[:cells]))

    few, many = peak(compute(1 << 13)), peak(compute(1 << 15))
    print(few, many)
    assert many < few + 2 * 20 * (1 << 15)


def test_segments_must_cover_the_cells() -> None:
    with pytest.raises(ValueError, match="cover"):
        run_pair(lambda transfers: l1_sums(transfers, np.zeros(3, np.uint32), np.array([2]), 4, "tree"))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("cells", SIZES)
@pytest.mark.parametrize("planes", [1, 2, 5])
def test_weighted_sums_of_bits(dtype: type, cells: int, planes: int) -> None:
    weights = [1, -3, 7, 1 << 12, -(1 << 10)][:planes]
    bits = np.random.default_rng().integers(0, 2, (planes, cells))
    shares = share_flags(bits)
    ran = run_pair(
        lambda transfers: weighted_sum(transfers, shares[transfers.link.me], weights, cells, dtype)
    )
    wanted = (bits * np.array(weights)[:, np.newaxis]).sum(axis=0).astype(dtype)
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], wanted)
    words, size, split = words_for(cells), np.dtype(dtype).itemsize, (planes - planes // 2, planes // 2)
    assert ran.rounds == 2
    assert ran.sent == [
        message_bytes(split[me] * words) + 8 * split[me] * words + size * cells * split[1 - me]
        for me in range(2)
    ]


def test_every_plane_needs_a_weight() -> None:
    bits = share_flags(np.ones((2, 3), np.uint32))
    with pytest.raises(ValueError, match="weights"):
        run_pair(lambda transfers: weighted_sum(transfers, bits[transfers.link.me], [1], 3, np.uint32))


@pytest.mark.parametrize(("narrow", "wide"), [(np.uint16, np.uint32), (np.uint32, np.uint64)])
@pytest.mark.parametrize("cells", [1, 65])
def test_a_wider_ring_holds_the_same_integers(narrow: type, wide: type, cells: int) -> None:
    top = np.iinfo(narrow).max
    values = np.random.default_rng().integers(0, top, cells, dtype=narrow, endpoint=True)
    values[:3] = np.array([top, 0, 1], narrow)[:cells]
    shares = share_ring(values)
    ran = run_pair(lambda transfers: lift(transfers, shares[transfers.link.me], wide))
    np.testing.assert_array_equal(ran.results[0] + ran.results[1], values.astype(wide))
    bits = 8 * np.dtype(narrow).itemsize
    assert ran.rounds == carry_rounds(bits, "tree") + 1


@pytest.mark.parametrize(("planes", "cells"), [(1, 1), (63, 64), (5, 1000)])
def test_which_vectors_are_zero(planes: int, cells: int) -> None:
    """A vector that is not zero passes with probability 2^-128."""
    bits = (np.random.default_rng().random((planes, cells)) < 0.1).astype(np.uint32)
    bits[:, ::3] = 0
    bits[0, 1::3] = 1
    shares = share_flags(bits)
    ran = run_pair(lambda transfers: zero_cells(transfers, shares[transfers.link.me], cells))
    for found in ran.results:
        np.testing.assert_array_equal(found, (bits == 0).all(axis=0))
    words = planes * words_for(cells)
    assert ran.rounds == 3
    assert ran.sent == [message_bytes(words) + 8 * words + 16 * cells] * 2


def test_the_zero_test_tells_nothing_but_zero_or_not() -> None:
    """What is opened for vectors of few or of many ones: 2^17 bits, a mean off by 0.01 has probability below
    10^-12."""
    for ones in (1, 20):
        bits = np.zeros((20, 1024), np.uint32)
        bits[:ones] = 1
        shares = share_flags(bits)
        ran = run_pair(
            lambda transfers, shares=shares: zero_cells(transfers, shares[transfers.link.me], 1024)  # type: ignore[misc]
        )
        last = [frame.payload for frame in ran.frames if frame.clock == max(f.clock for f in ran.frames)]
        opened = np.bitwise_xor(*(np.frombuffer(payload, np.uint8) for payload in last))
        assert abs(float(np.unpackbits(opened).mean()) - 0.5) < 0.01
