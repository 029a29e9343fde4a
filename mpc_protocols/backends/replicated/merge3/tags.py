"""merge3 where two of the three computing parties own the lists and the third owns nothing: the third compares
keyed hashes, in an order that it does not know (`docs/design/psu.md` 2.3).

A, B the owners, C the third party; N = N_A + N_B. Keys of A and B give, each from a stream of its own

    tags         64 bits of keyed BLAKE2b of every entry (`keys`)              places   a uniform permutation of N, A's first
    S            N words                                                       order    a uniform permutation of the union's rows

    A, B -> C    each its tags at their places, 0 at the other's, XOR S        8 N bytes from each
    A -> B       F(k_AC) at B's places; B -> A: F(k_BC) at A's                 4 bytes an entry of the other
    C            XORs both: N tags. Every different one gets a row, by a uniform permutation that C draws
    C -> A, B    u; the rows of all places, to A XOR F(k_BC), to B XOR F(k_AC)              4 N bytes to each
    A, B         take the mask off at their own places; `order` of what they find are their rows

Who learns what, and the proof: there; the same as where lists are merged (`protocol`). Threat model: semi-honest, at
most one of the three corrupted. Assumption: `prg`. 5 rounds while a list fits a block, of which 3 compare sizes and
union; per entry of both lists 10 bytes from an owner and 8 from C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3.announced import AnnouncedParty
from mpc_protocols.backends.replicated.merge3.keys import Keys, keys_of
from mpc_protocols.backends.replicated.merge3.lists import BLOCK, blocks
from mpc_protocols.backends.replicated.merge3.public import COUNT_BYTES
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.noise.permutation import permutation_of
from mpc_protocols.engine.prg import Reader, derive
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.randomness import permutation
from mpc_protocols.wire import Wire

Rows = NDArray[np.uint32]
ROW_BYTES = 4
_TAGS = b"merge3 tags"


def third_party(spec: AlignmentSpec, context: Context) -> int | None:
    """The computing party that owns nothing, where the two others own everything and nobody deviates; else None."""
    owners, computing = ({member.number for member in of} for of in (context.owners, context.computing))
    return (
        (computing - owners).pop() if len(owners) == 2 and owners < computing and not spec.malicious else None
    )


class TagParty(AnnouncedParty):
    """One of the three."""

    def __init__(
        self,
        wire: Wire,
        entries: Sequence[bytes] | None,
        kinds: Sequence[str],
        spec: AlignmentSpec,
        context: Context,
        third: int,
    ) -> None:
        """entries: an owner's, and kinds its key columns' types; None at the third party."""
        other = 3 - third - wire.me
        own = (
            None
            if entries is None
            else keys_of(entries, derive(wire.key(other), _TAGS, context.salt(spec, wire.session_id)), 1)
        )
        super().__init__(wire, own, kinds, spec, context)
        self.third = third
        self.places, self.cover, self.order, self.masks = (self.trio.operation() for _ in range(4))

    def run(self) -> Alignment:
        """The whole protocol."""
        self.announce()
        if self.own is None:
            rows, union = np.zeros(0, np.int64), self.answer()
        else:
            rows, union = self.ask(self.own)
        table = digest(b"psu union", self.sid, np.array([*self.sizes, union], ">u8").tobytes())
        self.compare(table, "did not arrive at the same union")
        return Alignment(union, rows, table)

    def ask(self, own: Keys) -> tuple[NDArray[np.int64], int]:
        """At an owner: the row of each entry, and how many rows there are."""
        trio, third, count = self.trio, self.third, sum(self.sizes)
        other = 3 - third - trio.me
        both = permutation_of(count, self._reader(other, self.places))
        mine, theirs = np.split(both, self.sizes[:1])[:: -1 if self.side else 1]
        shown = self._reader(other, self.cover).draw(count, np.uint64)
        shown[mine] ^= own.words
        for block in blocks(count):
            trio.send(third, shown[block])
        covers = self._swapped(other, self._mask(third)[theirs], len(mine))
        union = int.from_bytes(self.wire.receive(third, COUNT_BYTES), "big")
        found = trio.zeros(count, np.uint32)
        for block in blocks(count):
            found[block] = trio.receive(third, len(found[block]), np.uint32)
        return self._rows(own, (found[mine] ^ covers).astype(np.int64), union), union

    def answer(self) -> int:
        """At the third party: how many rows there are."""
        count = sum(self.sizes)
        tags = self.trio.zeros(count, np.uint64)
        owners = [owner.number for owner in self.context.owners]
        for block in blocks(count):
            for owner in owners:
                tags[block] ^= self.trio.receive(owner, len(tags[block]), np.uint64)
        rows, union = self.numbered(tags)
        masked = [
            (owner, rows ^ self._mask(other)) for owner, other in zip(owners, owners[::-1], strict=True)
        ]
        for owner in owners:
            self.wire.send(owner, union.to_bytes(COUNT_BYTES, "big"))
        for block in blocks(count):
            for owner, sent in masked:
                self.trio.send(owner, sent[block])
        return union

    def numbered(self, tags: Words) -> tuple[Rows, int]:
        """A row of every tag, one of each different one, in an order that only this party knows; how many there are."""
        distinct, which = np.unique(tags, return_inverse=True)
        return permutation(len(distinct)).astype(np.uint32)[which], len(distinct)

    def _swapped(self, other: int, sent: Rows, count: int) -> Rows:
        """What the other owner sends of this party's places; blocks go both ways in turn."""
        received = self.trio.zeros(count, np.uint32)
        for start in range(0, max(len(sent), count), BLOCK):
            part = received[start : start + BLOCK]
            self.trio.send(other, sent[start : start + BLOCK])
            part[:] = self.trio.receive(other, len(part), np.uint32)
        return received

    def _rows(self, own: Keys, found: NDArray[np.int64], union: int) -> NDArray[np.int64]:
        """Of every entry. found: what the third party numbered this party's tags, in the order of `own`. Raises
        `ProtocolAborted` unless it fits."""
        starts = np.append(True, own.words[1:] != own.words[:-1])[: len(found)]
        groups = np.cumsum(starts) - 1
        distinct = found[starts]
        if not (
            len(distinct) <= union <= sum(self.sizes)
            and np.array_equal(found, distinct[groups])
            and (distinct < union).all()
            and len(np.unique(distinct)) == len(distinct)
        ):
            raise ProtocolAborted(
                f"Party {self.context.name(self.third)} returned rows that do not fit this party's records; the alignment "
                "was stopped."
            )
        order = permutation_of(union, self._reader(3 - self.third - self.trio.me, self.order))
        rows = np.empty(len(found), np.int64)
        rows[own.order] = order[found]
        return rows

    def _reader(self, peer: int, operation: int) -> Reader:
        """The stream of an operation that this party and one other have."""
        trio = self.trio
        return (trio.own_reader if peer == trio.left else trio.next_reader)(operation)

    def _mask(self, peer: int) -> Rows:
        """What covers the rows of all places towards the owner who lacks this stream: `peer` is the other, or the third."""
        return self._reader(peer, self.masks).draw(sum(self.sizes), np.uint32)
