"""Ciphertexts become shares that add up exactly; the aggregator sees ciphertexts only; what is none stops the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.memory_wire import Frame, MemoryNetwork
from mpc_protocols.paillier.contribution import Sharing, add_encrypted, decrypt_masked, send_encrypted
from mpc_protocols.paillier.keys import Encryption, PrivateKey
from mpc_protocols.paillier.packing import HEADER_BYTES, Packing
from mpc_protocols.wire import Wire
from tests.conformance.bent_wire import Bend, bent, change
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
            return add_encrypted(wire, HOLDER, named(), encryption)
        if wire.me == HOLDER:
            return decrypt_masked(wire, AGGREGATOR, named(), key)
        first = wire.me == 2
        send_encrypted(
            wire,
            AGGREGATOR,
            (sharing if first else None) or named(),
            (encrypting if first else None) or encryption,
            counts[wire.me - 2],
        )
        return None

    network = MemoryNetwork(2 + len(counts), 2, session_id=bytes(32), tap=tap, patience_s=20)
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


def test_all_rows_in_one_cell(key: PrivateKey) -> None:
    """The largest count that a slot must hold, in every slot."""
    counts = [np.full(CELLS, facts().row_cap, np.uint32), np.zeros(CELLS, np.uint32)]
    shares = shared(key, counts)
    np.testing.assert_array_equal(shares[0] + shares[1], counts[0])


def test_the_aggregator_sees_ciphertexts_only_and_the_key_holder_no_contributors(key: PrivateKey) -> None:
    counts, frames = [np.full(CELLS, 7, np.uint32)] * 2, list[Frame]()
    shares = shared(key, counts, tap=frames.append)
    packing, size = named().packing(key.public.bits), key.public.ciphertext_bytes
    due = {(2, AGGREGATOR), (3, AGGREGATOR), (AGGREGATOR, HOLDER)}
    assert {(frame.sender, frame.receiver) for frame in frames} == due
    sent = [frame.payload for frame in frames if frame.receiver == AGGREGATOR]
    headers = {payload for payload in sent if len(payload) == HEADER_BYTES}
    assert headers == {named().header(key.public, contributor) for contributor in (2, 3)}
    seen = set[bytes]()
    for payload in sent:
        if payload not in headers:
            opened = key.decrypt(key.public.decode(payload, 2), packing.plaintext_bytes)
            np.testing.assert_array_equal(packing.unpack(opened, CELLS), counts[0])
            seen |= {payload[start : start + size] for start in range(0, len(payload), size)}
    assert len(seen) == 2 * packing.count(CELLS)  # equal counts, yet all ciphertexts differ
    [masked] = [frame.payload for frame in frames if frame.receiver == HOLDER]
    opened = key.decrypt(key.public.decode(masked, 0), packing.plaintext_bytes)
    np.testing.assert_array_equal(packing.unpack(opened, CELLS), shares[1])


def test_the_key_holders_slots_are_uniform_whatever_the_counts(key: PrivateKey) -> None:
    """The low 32 bits of 1,400 slots: bits set are binomial; 5.5 standard deviations, false alarms 4e-8 each."""
    for value in (0, 90_000):
        bits = 0
        for _ in range(20):
            share = shared(key, [np.full(CELLS, value, np.uint32)])[1]
            bits += int(np.unpackbits(share.view(np.uint8)).sum())
        cells = 32 * 20 * CELLS
        assert abs(bits - cells / 2) < 5.5 * (cells / 4) ** 0.5


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
    number = 0 if way[0] == AGGREGATOR else 1  # after the header
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
    lies = [b"\xff" * packing.plaintext_bytes] * packing.count(CELLS)

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
    np.testing.assert_array_equal(sums[1] - sums[0], one_more - honest)  # but with a chance of 2^-39
