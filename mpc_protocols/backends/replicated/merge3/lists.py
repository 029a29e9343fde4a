"""Lists of keys on their way into the sharing, at owners that compute and at owners that only contribute
(`merge3`).

    owner p computes     component p is a stream that p and p - 1 share, component p + 1 the keys masked by it: 8 bytes a key
                         to p + 1
    owner contributes    two components are streams of fresh seeds, the third the keys masked by both; every component goes to
                         the two parties that hold it: 8 bytes a key to two of them, both seeds to the third; the roles rotate;
                         the two compare hashes of what they hold before it is used (`replicated.sharing.copies`)

Unlike counts (`replicated.contribution`), lists are not added up, so a contributor's go straight into
replicated shares: no round and no byte between the computing parties.

Threat model: semi-honest, at most one computing party corrupted: each misses one component, which is uniform
to it. Lists go in blocks, all owners' in turn, so that no party waits for another's window. Assumption:
`prg`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np

from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.copies import Copy
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, derive
from mpc_protocols.wire import Wire

SEED_BYTES = 16
BLOCK = 1 << 18
"""Words of one message of a list."""


def blocks(count: int) -> Iterator[slice]:
    """The messages of a list."""
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


class Input:
    """One owner's list at one computing party, block by block; `share` holds it in the end."""

    def __init__(self, trio: Trio, owner: int, index: int | None, size: int, own: Words | None) -> None:
        """owner: its number on the wire. index: its place among the owners that contribute, None if it
        computes. own: the words, at the owner itself. Receives the seeds that are due here."""
        self.trio, self.owner, self.index = trio, owner, index
        self.share = BitShare(*(trio.zeros(size, np.uint64) for _ in range(2)))
        if index is None:
            operation = trio.operation()
            if own is not None:
                self.share.own[:] = trio.own_mask(size, np.uint64, operation)
                self.share.next[:] = own ^ self.share.own
            elif trio.right == owner:
                self.share.next[:] = trio.next_mask(size, np.uint64, operation)
            return
        for component, out in ((trio.me, self.share.own), (trio.right, self.share.next)):
            if component != masked_component(index):
                seed = bytes(trio.wire.receive(owner, SEED_BYTES))
                out[:] = _stream(seed, trio.wire.session_id).draw(size, np.uint64, 0)

    def send(self, start: int) -> None:
        """A computing owner's block, to its right neighbour."""
        if self.trio.me == self.owner:
            self.trio.send(self.trio.right, self.share.next[start : start + BLOCK])

    def copies(self) -> list[Copy]:
        """Copies to compare, once a contributor's list is whole: this party's two components, each sent to
        another as well."""
        if self.index is None:
            return []
        return [
            Copy(self.owner, self.trio.left, self.share.own),
            Copy(self.owner, self.trio.right, self.share.next),
        ]

    def receive(self, start: int) -> None:
        """The block that is due here, if one is."""
        if self.index is None:
            out = self.share.own if self.trio.left == self.owner else None
        else:
            masked = masked_component(self.index)
            out = {masked: self.share.own, (masked - 1) % 3: self.share.next}.get(self.trio.me)
        if out is not None:
            part = out[start : start + BLOCK]
            part[:] = self.trio.receive(self.owner, len(part), np.uint64)


def send_list(wire: Wire, index: int, words: Words) -> None:
    """At a contributor: its list, to the three computing parties."""
    masked = masked_component(index)
    seeds = {component % 3: secrets.token_bytes(SEED_BYTES) for component in (masked + 1, masked + 2)}
    for peer in range(3):
        for component in (peer, (peer + 1) % 3):
            if component in seeds:
                wire.send(peer, seeds[component])
    hidden = words.copy()
    for seed in seeds.values():
        hidden ^= _stream(seed, wire.session_id).draw(len(words), np.uint64, 0)
    for block in blocks(len(words)):
        for peer in (masked, (masked - 1) % 3):
            wire.send(peer, hidden[block].view(np.uint8).data)


def masked_component(index: int) -> int:
    """The component that holds a contributor's masked keys; the other two are streams."""
    return index % 3


def _stream(seed: bytes, session_id: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, session_id, b"keys"))
