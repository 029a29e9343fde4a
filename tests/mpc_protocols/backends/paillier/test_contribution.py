"""Ciphertexts become shares that add up exactly; the aggregator sees ciphertexts only; what is none stops the
run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.paillier.contribution import (
    Sharing,
    add_encrypted,
    decrypt_masked,
    send_encrypted,
)
from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey
from mpc_protocols.backends.paillier.packing import HEADER_BYTES, Packing
from mpc_protocols.backends.pair.circuits import sign
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent, change
from tests.mpc_protocols.backends.pair.pair_run import extended
from tests.worlds.tables import facts

CLIQUES = [("a", "b", "c"), ("c", "d")]
CELLS = 70
AGGREGATOR, HOLDER = 0, 1


def named(session_id: bytes = bytes(32), number: int = 1) -> Sharing:
    return Sharing(session_id, facts(), number, CLIQUES, ())


def shared(
    key: PrivateKey,
    counts: Sequence[Elements],
    *,
    tap: Callable[[Frame], None] | None = None,
    bend: Bend | None = None,
    encrypting: Encryption | None = None,
    sharing: Sharing | None = None,
) -> list[Any]:
    """The shares of parties 0 and 1. encrypting, sharing: of the first contributor."""

    def party(plain: Wire) -> Any:
        wire, encryption = bent(plain, bend), Encryption(key.public)
        if wire.me == AGGREGATOR:
            return add_encrypted(Transfers(*extended(wire)), named(), encryption)
        if wire.me == HOLDER:
            return decrypt_masked(Transfers(*extended(wire)), named(), key)
        first = wire.me == 2
        send_encrypted(
            wire,
            AGGREGATOR,
            (sharing if first else None) or named(),
            (encrypting if first else None) or encryption,
            counts[wire.me - 2],
        )
        return None

    network = MemoryNetwork(2 + len(counts), 2, session_id=bytes(32), tap=tap)
    return network.run([party] * (2 + len(counts)))


def random_counts(parties: int) -> list[Elements]:
    return [np.random.default_rng().integers(0, 30_000, CELLS).astype(np.uint32) for _ in range(parties)]


@pytest.mark.parametrize("parties", [1, 2, 5])
def test_shares_add_up_to_everybodys_counts(key: PrivateKey, parties: int) -> None:
    counts = random_counts(parties)
    shares = shared(key, counts)
    np.testing.assert_array_equal(shares[0] + shares[1], np.sum(counts, axis=0, dtype=np.uint32))
    again = shared(key, counts)
    assert (shares[0] != again[0]).all() and (
        shares[1] != again[1]
    ).all()  # 140 equalities of chance 2^-32: 3e-8


@pytest.mark.parametrize(
    "mask", [0, 1 << 31, (1 << 31) - 1, (1 << 32) - 1], ids=["zero", "half", "just below half", "ones"]
)
def test_every_slot_at_its_bounds(key: PrivateKey, mask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of 0 and of the most that a slot may hold, under masks that are the same in all slots, and in
    blocks.

    A mask of ones and counts of 0 but for the first make every slot carry; a mask of 0 none.
    """
    monkeypatch.setattr(sign, "CHUNK", 64)
    ones = np.full(CELLS, mask, np.uint32)
    monkeypatch.setattr(
        Packing, "masks", lambda packing, count: packing.pack(np.resize(ones, count * packing.slots))
    )
    most = np.full(CELLS, (1 << 31) - 1, np.uint32)
    for counts in (np.zeros(CELLS, np.uint32), np.eye(1, CELLS, dtype=np.uint32)[0], most):
        shares = shared(key, [counts, np.zeros(CELLS, np.uint32)])
        np.testing.assert_array_equal(shares[0] + shares[1], counts)


def test_what_the_two_see_of_contributors(key: PrivateKey) -> None:
    """The aggregator ciphertexts only; the key holder one masked sum, then bits of carries under masks of
    transfers.

    What the two send first are their transfers' trees.
    """
    counts, frames = [np.full(CELLS, 7, np.uint32)] * 2, list[Frame]()
    shared(key, counts, tap=frames.append)
    packing, size = named().packing(key.public.bits), key.public.ciphertext_bytes
    assert {(frame.sender, frame.receiver) for frame in frames} == {
        (2, AGGREGATOR),
        (3, AGGREGATOR),
        (AGGREGATOR, HOLDER),
        (HOLDER, AGGREGATOR),
    }
    sent = [frame.payload for frame in frames if frame.sender > 1]
    headers = {payload for payload in sent if len(payload) == HEADER_BYTES}
    assert headers == {named().header(key.public, contributor) for contributor in (2, 3)}
    seen = set[bytes]()
    for payload in sent:
        if payload not in headers:
            opened = key.decrypt(key.public.decode(payload, 2), packing.plaintext_bytes)
            np.testing.assert_array_equal(packing.unpack(opened, CELLS), counts[0])
            seen |= {payload[start : start + size] for start in range(0, len(payload), size)}
    assert len(seen) == 2 * packing.count(CELLS)  # equal counts, yet all ciphertexts differ
    _, masked, *of_carries = [frame.payload for frame in frames if frame.receiver == HOLDER]
    assert len(masked) == packing.count(CELLS) * size
    words = -(-CELLS // 64)
    assert [len(payload) for payload in of_carries] == [message_bytes(words), 8 * words]
    assert [len(frame.payload) for frame in frames if frame.sender == HOLDER][1:] == [4 * CELLS]


def test_the_key_holders_slots_are_uniform_whatever_the_counts(key: PrivateKey) -> None:
    """350 slots: bits set are binomial; 6.2 standard deviations, false alarms 6e-10 each."""
    for value in (0, 90_000):
        bits = 0
        for _ in range(5):
            share = shared(key, [np.full(CELLS, value, np.uint32)])[1]
            bits += int(np.unpackbits(share.view(np.uint8)).sum())
        cells = 32 * 5 * CELLS
        assert abs(bits - cells / 2) < 6.2 * (cells / 4) ** 0.5


def replaced(value: Callable[[PrivateKey], int]) -> Callable[[PrivateKey], Callable[[bytes], bytes]]:
    def of(key: PrivateKey) -> Callable[[bytes], bytes]:
        size = key.public.ciphertext_bytes
        return lambda sent: sent[:-size] + int(value(key)).to_bytes(size, "big")

    return of


BAD = {
    "zero": (replaced(lambda key: 0), "no ciphertext"),
    "n squared": (replaced(lambda key: int(key.public.square)), "no ciphertext"),
    "a multiple of n": (replaced(lambda key: int(key.public.n)), "no ciphertext"),
    "a byte less": (lambda key: lambda sent: sent[:-1], "bytes where"),
    "a ciphertext less": (lambda key: lambda sent: sent[: -key.public.ciphertext_bytes], "bytes where"),
    "a ciphertext more": (
        lambda key: lambda sent: sent + sent[-key.public.ciphertext_bytes :],
        "bytes where",
    ),
}


@pytest.mark.parametrize("way", [(2, AGGREGATOR), (AGGREGATOR, HOLDER)], ids=["contributor", "aggregator"])
@pytest.mark.parametrize("what", BAD)
def test_what_is_no_ciphertext_stops_its_receiver(key: PrivateKey, way: tuple[int, int], what: str) -> None:
    how, words = BAD[what]
    number = 1  # after the header; after the trees of the transfers
    with pytest.raises(ProtocolAborted, match=rf"Party {way[0]} sent .*{words}"):
        shared(key, random_counts(2), bend=change(way, number, how(key)))


def test_another_public_key_stops_the_run(key: PrivateKey) -> None:
    other = Encryption(PrivateKey.generate(key.public.bits).public)
    with pytest.raises(ProtocolAborted, match="Party 2 has encrypted to another public key"):
        shared(key, random_counts(2), encrypting=other)


@pytest.mark.parametrize(
    "other",
    [named(bytes(31) + b"1"), named(number=2), Sharing(bytes(32), facts(), 1, CLIQUES[::-1], ())],
    ids=["session", "sharing", "marginals"],
)
def test_ciphertexts_for_something_else_stop_the_run(key: PrivateKey, other: Sharing) -> None:
    with pytest.raises(ProtocolAborted, match="Party 2 has encrypted other marginals"):
        shared(key, random_counts(2), sharing=other)


def test_a_lying_contributor_adds_what_it_likes_and_nothing_else_moves(
    key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that overflow: an honest record still moves one cell by one, whatever the liar sends."""
    packing = named().packing(key.public.bits)
    lies = [b"\xff" * (key.public.bits // 8 - 1)] * packing.count(CELLS)

    class Liar(Encryption):
        def encrypt(self, plaintexts: Sequence[bytes]) -> Any:
            return super().encrypt(lies[: len(plaintexts)])

    honest = random_counts(1)[0]
    one_more = honest + (np.arange(CELLS) == 33).astype(np.uint32)
    masks = packing.masks(packing.count(CELLS))
    monkeypatch.setattr(Packing, "masks", lambda packing, count: masks)  # the same in both runs
    sums = []
    for counts in (honest, one_more):
        ran = shared(key, [honest, counts], encrypting=Liar(key.public))
        sums.append(ran[0] + ran[1])
    np.testing.assert_array_equal(sums[1] - sums[0], one_more - honest)  # but with a chance of 2^-30
