"""The prime field, dealt shares, and the conversion of parts into holders' counts: at their extremes, and
against integers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.vertical import counts, prime
from mpc_protocols.backends.shamir.vertical.dealer import (
    Dealer,
    Shares,
    drawing,
    evaluators,
    receiving,
    zero_shares,
    zero_streams,
)
from mpc_protocols.backends.shamir.vertical.prime import MAX_ROWS, PRIME
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.bent_wire import bent, change
from tests.mpc_protocols.backends.shamir.mesh_run import run_mesh

ENDS = [0, 1, 2, 14, 15, 16, 255, 256, 32_768, PRIME - 2, PRIME - 1]


def residues(rng: np.random.Generator, *shape: int) -> NDArray[np.uint16]:
    """Random elements, many of them at the ends."""
    found = rng.integers(0, PRIME, shape).astype(np.uint16)
    return np.where(rng.random(shape) < 0.3, rng.choice(ENDS, shape), found).astype(np.uint16)


def test_arithmetic_is_that_of_integers() -> None:
    rng = np.random.default_rng()
    a, b = residues(rng, 700, 5), residues(rng, 700, 3)
    wide, other = a.astype(object), b.astype(object)
    assert (prime.product(a, b) == wide.T @ other % PRIME).all()
    rows = (wide[:, :, np.newaxis] * other[:, np.newaxis, :]).reshape(700, -1) % PRIME
    assert (prime.rowwise(a, b) == rows).all()
    mixed = prime.combination([PRIME - 1, 7, 0], [a, a[::-1], a])
    assert (mixed == (wide * (PRIME - 1) + 7 * wide[::-1]) % PRIME).all()
    numbers = np.array(
        [0, PRIME - 1, PRIME, 2**16, 2**31, 2**32 - 1, *(PRIME * k for k in ENDS[2:])], np.uint32
    )
    assert prime.reduced(numbers).tolist() == [n % PRIME for n in numbers.tolist()]


def test_longest_sums_are_exact() -> None:
    a = np.full((MAX_ROWS, 1), PRIME - 1, np.uint16)
    assert prime.product(a, a).tolist() == [[MAX_ROWS]]


def test_uniform_elements_are_below_p_and_alike_at_both_ends_of_a_stream() -> None:
    """2^20 draws meet p or more some 240 times: none with a chance below 1e-100."""
    first, second = (prime.uniform(KeyStream(b"k" * 16).reader(3), (1 << 10, 1 << 10)) for _ in range(2))
    assert np.array_equal(first, second) and int(first.max()) < PRIME
    raw = KeyStream(b"k" * 16).draw((1 << 10, 1 << 10), np.uint16, 3)
    assert (raw >= PRIME).any() and np.array_equal(first[raw < PRIME], raw[raw < PRIME])


def dealt(
    computing: int, dealer: int, secret: NDArray[np.uint16]
) -> tuple[list[NDArray[np.uint16]], list[Frame]]:
    """Every evaluator's share of a matrix that a party deals, and the messages."""
    frames: list[Frame] = []
    parties = max(computing, dealer + 1)

    def party(wire: Wire) -> NDArray[np.uint16] | None:
        evaluates = wire.me in evaluators(threshold_of(computing))
        if wire.me == dealer:
            make = Dealer.computing if wire.me < computing else Dealer.contributing
            own = make(wire).deal(secret)
            assert (own is not None) == evaluates
            return own
        if not evaluates:
            return None
        shares = Shares(wire)
        if dealer >= computing:
            shares.hear(dealer)
        return shares.receive(dealer, secret.shape)

    found = MemoryNetwork(parties, computing, tap=frames.append).run([party] * parties)
    return [share for share in found if share is not None], frames


@pytest.mark.parametrize(("computing", "dealer"), [(3, 0), (3, 4), (4, 3), (5, 2), (8, 7), (9, 8), (9, 9)])
def test_t_plus_one_shares_give_the_secret_and_t_say_nothing(computing: int, dealer: int) -> None:
    """Shares of zeros and of ones: chi-square of the elements of each, in 64 classes. False alarm: 1e-9 each,
    78 are tested."""
    threshold = threshold_of(computing)
    for value in (0, 1):
        secret = np.full((4000, 3), value, np.uint16)
        shares, frames = dealt(computing, dealer, secret)
        for chosen in list(combinations(range(len(shares)), threshold + 1))[:6]:
            weights = prime.lagrange([party + 1 for party in chosen], 0)
            assert np.array_equal(prime.combination(weights, [shares[party] for party in chosen]), secret)
        for share in shares:
            places = np.bincount(share.reshape(-1) // np.uint16(1024), minlength=64).astype(float)
            expected = np.array([1024] * 63 + [PRIME - 63 * 1024]) * share.size / PRIME
            assert stats.chisquare(places, expected).pvalue > 1e-9
        sent = [(frame.receiver, len(frame.payload)) for frame in frames]
        seeds = [(peer, 16) for peer in drawing(dealer, threshold) if dealer >= computing]
        assert sorted(sent) == sorted([*seeds, *((peer, 24_000) for peer in receiving(dealer, threshold))])


@pytest.mark.parametrize("computing", [3, 5, 7, 9])
def test_drawn_and_sent_shares_are_fresh_each_time(computing: int) -> None:
    secret = np.zeros((50, 2), np.uint16)

    def party(wire: Wire) -> list[bytes]:
        if wire.me == 0:
            dealer = Dealer.computing(wire)
            mine = [dealer.deal(secret) for _ in range(3)]
            return [of.tobytes() for of in mine if of is not None]
        shares = Shares(wire)
        return [shares.receive(0, (50, 2)).tobytes() for _ in range(3)]

    for seen in MemoryNetwork(computing, computing).run([party] * computing):
        assert len(set(seen)) == 3


@pytest.mark.parametrize("computing", [3, 5, 6, 9])
def test_zeros_add_up_to_zero_and_are_fresh(computing: int) -> None:
    """Two numbers and two sessions with the same keys: no evaluator has the same part twice, no two have the
    same."""
    keys, seen = MemoryNetwork(computing, computing), list[bytes]()
    evaluating = evaluators(threshold_of(computing))

    def party(wire: Wire) -> list[NDArray[np.uint16]]:
        if wire.me not in evaluating:
            return []
        streams = zero_streams(wire)
        assert sorted([*streams, wire.me]) == list(evaluating)
        return [zero_shares(wire, streams, number, 60) for number in (0, 1)]

    for _ in range(2):
        network = MemoryNetwork(computing, computing)
        network.share_keys(keys)
        found = [parts for parts in network.run([party] * computing) if parts]
        for parts in zip(*found, strict=True):
            assert not (np.sum(parts, axis=0, dtype=np.int64) % PRIME).any()
            seen += [part.tobytes() for part in parts]
    assert len(set(seen)) == len(seen) == 4 * len(evaluating)


@pytest.mark.parametrize("computing", [3, 4, 5, 7, 9])
def test_parts_become_the_holders_counts(computing: int) -> None:
    """Counts at their ends, with parts that are random, all zero but one, and as large as can be: every k
    comes up."""
    threshold, rng = threshold_of(computing), np.random.default_rng()
    wanted = np.array([0, 1, 15, 16, 4096, MAX_ROWS - 1, MAX_ROWS] * 30, np.int64)
    parts = residues(rng, 2 * threshold + 1, len(wanted))
    parts[:, :7] = 0
    parts[:, 7:14] = PRIME - 1
    last = (wanted - parts[:-1].astype(np.int64).sum(axis=0)) % PRIME
    parts[-1] = last.astype(np.uint16)

    def body(gates: ShamirGates) -> NDArray[np.uint32]:
        me = gates.mesh.me
        return counts.held_counts(gates, parts[me] if me <= 2 * threshold else None, len(wanted))

    ran = run_mesh(computing, body)
    assert np.array_equal(np.sum(ran.results, axis=0, dtype=np.uint32), wanted)
    assert not any(held.any() for held in ran.results[threshold + 1 :])
    joined = parts.astype(np.int64)
    joined[1 : threshold + 1] += joined[threshold + 1 :]
    joined[0] += 15 * threshold
    wraps = (joined[: threshold + 1] % PRIME).sum(axis=0) // PRIME
    assert set(range(threshold + 1)) - set(wraps.tolist()) <= ({threshold} if threshold > 2 else set())


def test_the_masks_of_equal_counts_are_fresh() -> None:
    parts = np.zeros((3, 64), np.uint16)

    def body(gates: ShamirGates) -> list[NDArray[np.uint32]]:
        return [counts.held_counts(gates, parts[gates.mesh.me], 64) for _ in range(2)]

    for once, again in run_mesh(3, body).results[:2]:
        assert len(set(once.tolist())) > 60 and not (once == again).all()


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\xff\xff" * 6, "no residue modulo 65521"),
        (b"\0" * 11, "where 12 were due"),
        (b"\0" * 13, "where 12 were due"),
    ],
)
def test_what_is_no_share_stops_the_run(payload: bytes, words: str) -> None:
    [receiver] = receiving(0, 1)

    def party(plain: Wire) -> None:
        wire = bent(plain, change((0, receiver), 0, lambda _: payload))
        if wire.me == 0:
            Dealer.computing(wire).deal(np.ones((3, 2), np.uint16))
        else:
            Shares(wire).receive(0, (3, 2))

    with pytest.raises(ProtocolAborted, match=words):
        MemoryNetwork(3, 3).run([party] * 3)


def test_a_part_that_is_no_residue_stops_the_run() -> None:
    def party(plain: Wire) -> None:
        wire = bent(plain, change((2, 1), 0, lambda payload: b"\xf1\xff" * (len(payload) // 2)))
        counts.held_counts(ShamirGates(Mesh(wire)), np.zeros(5, np.uint16), 5)

    with pytest.raises(ProtocolAborted, match="Party 2 sent a share that is no residue"):
        MemoryNetwork(3, 3).run([party] * 3)
