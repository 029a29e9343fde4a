"""Nobody goes on with another value than somebody else: openings, and what a contributor sends to two
parties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.sharing import copies
from mpc_protocols.backends.replicated.sharing.boolean import open_bits
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.backends.replicated.sharing.ring import open_ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryWire
from tests.mpc_protocols.backends.replicated.trio_run import deal_bits, deal_ring, run_trio
from tests.mpc_protocols.backends.replicated.vertical.owners import partition, random_owners, shared_marginals

OPENINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any], type[Any]]] = {
    "ring": (deal_ring, open_ring, np.uint32),
    "bits": (deal_bits, open_bits, np.uint64),
}


@pytest.mark.parametrize("kind", OPENINGS)
def test_an_opening_takes_one_round_and_a_hash_more(kind: str) -> None:
    deal, reveal, dtype = OPENINGS[kind]
    values = np.arange(1000, dtype=dtype)
    shares, frames = deal(values, np.random.default_rng(0)), list[Frame]()
    opened, traffic = run_trio(lambda trio: reveal(trio, shares[trio.me]), tap=frames.append)
    for each in opened:
        np.testing.assert_array_equal(each, values)
    assert [(each.rounds, each.bytes_sent) for each in traffic] == [(1, values.nbytes + DIGEST_BYTES)] * 3
    for (
        frame
    ) in frames:  # who lacks a component gets it from its left neighbour, and its hash from the right one
        expected = values.nbytes if frame.receiver == (frame.sender + 1) % 3 else DIGEST_BYTES
        assert len(frame.payload) == expected


def test_nothing_travels_for_no_cells() -> None:
    shares = deal_ring(np.zeros(0, np.uint32), np.random.default_rng(0))
    _, traffic = run_trio(lambda trio: open_ring(trio, shares[trio.me]))
    assert all(each.messages_sent == 0 for each in traffic)


@pytest.mark.parametrize("kind", OPENINGS)
@pytest.mark.parametrize("cheat", [0, 1, 2])
@pytest.mark.parametrize("part", ["component", "hash"])
def test_a_party_that_opens_something_else_to_one_other_is_noticed_by_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, cheat: int, part: str
) -> None:
    """Only the victim's value would differ; it stops before it has one."""
    deal, reveal, dtype = OPENINGS[kind]
    shares = deal(np.arange(100, dtype=dtype), np.random.default_rng(0))
    victim = (cheat + 1) % 3 if part == "component" else (cheat - 1) % 3
    original, values = MemoryWire.send, list[Any]()

    def send(self: MemoryWire, peer: int, payload: Any) -> None:
        changed = bytearray(payload)
        if self.me == cheat and peer == victim:
            changed[-1] ^= 1
        original(self, peer, bytes(changed))

    monkeypatch.setattr(MemoryWire, "send", send)

    def body(trio: Trio) -> None:
        values.append((trio.me, reveal(trio, shares[trio.me])))

    with pytest.raises(ProtocolAborted, match="different parts of a value") as caught:
        run_trio(body)
    assert f"{cheat}" in caught.value.sentence and victim not in [me for me, _ in values]


SIZES = {"a": 3, "b": 4, "c": 2}
OF = partition(SIZES, {"a": 0, "b": 3, "c": 4}, "intersection", 40)
TABLES = random_owners(SIZES, OF, [1.0, 1.0, 1.0], np.random.default_rng(3))


@pytest.mark.parametrize("contributor", [3, 4])
@pytest.mark.parametrize("message", range(4))
def test_a_contributor_that_sends_two_parties_different_copies_is_named(
    monkeypatch: pytest.MonkeyPatch, contributor: int, message: int
) -> None:
    """Of a seed (messages 0 to 2) or of its rows (then): before they are used."""
    original, count = MemoryWire.send, 0

    def send(self: MemoryWire, peer: int, payload: Any) -> None:
        nonlocal count
        changed = bytearray(payload)
        if self.me == contributor:
            changed[0] ^= count == message
            count += 1
        original(self, peer, bytes(changed))

    marginals, rows, _ = shared_marginals(SIZES, OF, TABLES, [[("a", "b", "c")]])
    assert rows == [40] and int(marginals[0].sum()) == 40
    monkeypatch.setattr(MemoryWire, "send", send)
    blamed = rf"One of these two did not follow the protocol: party \d, party {contributor}\. "
    with pytest.raises(
        ProtocolAborted, match=rf"^{blamed}Party \d says that party {contributor} sent it another copy"
    ):
        shared_marginals(SIZES, OF, TABLES, [[("a", "b", "c")]])


def test_a_hash_depends_on_every_byte() -> None:
    array = np.arange(64, dtype=np.uint16)
    seen = {copies.digest(array)}
    for place in range(64):
        changed = array.copy()
        changed[place] ^= 1
        seen.add(copies.digest(changed))
    assert len(seen) == 65 and all(len(each) == DIGEST_BYTES for each in seen)
