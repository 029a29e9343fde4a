"""merge3: private set union of two to eight owners inside the three-party replicated engine
(`docs/design/psu.md` 2.2). The default there.

Owners may compute or only contribute; computing parties may own nothing. With N = sum of the announced list
lengths N_i:

    announce   every owner -> computing parties: N_i and the types of its key columns; the three compare what they were told
    share      the owners' sorted keys (`keys`) as XOR shares, 8 bytes a key (`lists`); the computing parties set each list's
               public label, the owner's number, in the low bits of its words
    merge      `replicated.merging`
    name       `replicated.grouping`: who repeats the one before; fresh shared names rho_t (free); a group gets its first one's
    shuffle    (`sorting.shuffle`) of rho_t with "repeats" as lowest bit; another, independent one of (word, name)
    union      the first is opened. Those of firsts, sorted, are U
    deliver    labels of the second are opened, then each row's owner gets the rest of that row (`delivery`)

Who learns what: everybody all N_i and u, an owner also its own rows; the proof, what a liar can do, and
figures: there. Threat model: semi-honest, at most one of the three computing parties corrupted, with any
number of contributors; if the specification says so, one that deviates (`proved`). Assumption: `prg`. Cost:
`counted`; 160 bytes of memory an entry of all lists at a computing party.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3.announced import AnnouncedParty
from mpc_protocols.backends.replicated.merge3.delivery import hand_over, holders, receive
from mpc_protocols.backends.replicated.merge3.keys import Keys, label_bits
from mpc_protocols.backends.replicated.merge3.lists import BLOCK, Input, blocks
from mpc_protocols.backends.replicated.merge3.public import (
    COUNT_BYTES,
    largest_group,
    table_digest,
)
from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare, and_public, open_bits, xor_public
from mpc_protocols.backends.replicated.sharing.copies import same_copies
from mpc_protocols.backends.replicated.sorting.comparison import index_reversed
from mpc_protocols.backends.replicated.sorting.grouping import repeats, spread
from mpc_protocols.backends.replicated.sorting.merging import merge
from mpc_protocols.backends.replicated.sorting.shuffle import shuffle
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.wire import Wire

_FIRST = np.uint64(1)  # a name's lowest bit: set where it repeats the one before


class ComputingParty(AnnouncedParty):
    """One of the three; the methods are the steps, in order."""

    def __init__(
        self, wire: Wire, own: Keys | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
    ) -> None:
        super().__init__(wire, own, kinds, spec, context)
        self.gates = TrioBitGates(self.trio)
        self.outside = [owner.number for owner in context.owners if owner.number >= wire.computing]

    def run(self) -> Alignment:
        """The whole protocol."""
        self.announce()
        words = merge(self.gates, self.share())
        named, marked = self.name(words)
        (names,), rows_of = self.shuffled([marked], first=1), self.shuffled([words, named])
        self.judge()
        union = self.union(self._opened(names))
        table = table_digest(self.sid, self.sizes, union)
        self.compare(table, "did not arrive at the same union")
        received = self.deliver(rows_of, union, table)
        rows = (
            np.zeros(0, np.int64)
            if self.own is None
            else self.own.recognised(received, union, len(self.sizes))
        )
        return Alignment(len(union), rows, table)

    def share(self) -> list[BitShare]:
        """All lists as shares of keys with their labels, in the owners' order."""
        inputs = [
            Input(
                self.trio,
                owner.number,
                self.outside.index(owner.number) if owner.number in self.outside else None,
                size,
                self.own.words if self.own is not None and side == self.side else None,
            )
            for side, (owner, size) in enumerate(zip(self.context.owners, self.sizes, strict=True))
        ]
        for start in range(0, max(self.sizes, default=0), BLOCK):
            for each in inputs:
                each.send(start)
            for each in inputs:
                each.receive(start)
        if copies := [copy for each in inputs for copy in each.copies()]:
            same_copies(self.trio, copies)
        keep = ~np.array([self._label_mask()], np.uint64)
        return [
            xor_public(self.trio, and_public(each.share, keep), index_reversed(np.array([side], np.uint64)))
            for side, each in enumerate(inputs)
        ]

    def name(self, words: BitShare) -> tuple[BitShare, BitShare]:
        """The name of every word's group; and every word's own fresh name, its lowest bit set unless it is
        the group's."""
        repeated = repeats(self.gates, words, self._label_mask())
        drawn = self._fresh(len(words))
        named = spread(self.gates, drawn, repeated, largest_group(self.spec, len(self.sizes)))
        return named, drawn ^ and_public(repeated, np.asarray(_FIRST))

    def shuffled(self, columns: Sequence[BitShare], first: int = 0) -> list[BitShare]:
        """The columns in an order that nobody knows."""
        return shuffle(self.trio, columns, first)

    def judge(self) -> None:
        """Called before anything is opened."""

    def union(self, opened: Words) -> Words:
        """All groups' names, sorted. opened: all names, to the three."""
        union = np.sort(opened[opened & _FIRST == 0])
        if (union[1:] == union[:-1]).any():
            raise ProtocolAborted("Two records drew the same name by chance; start the run again.")
        return union

    def deliver(self, mixed: Sequence[BitShare], union: Words, table: bytes) -> Words:
        """Every row of words and names, which are in a secret order, to its owner; this party's own, shape
        (2, n)."""
        places = self.places(self._opened_labels(mixed[0]))
        for outsider in self.outside:
            self.wire.send(outsider, table)
            if self.wire.me == holders(self.outside.index(outsider))[2]:
                self.wire.send(
                    outsider,
                    b"".join(size.to_bytes(COUNT_BYTES, "big") for size in (*self.sizes, len(union))),
                )
                for block in blocks(len(union)):
                    self.trio.send(outsider, union[block])
        received = np.empty_like(mixed[0].own, shape=(2, 0 if self.side is None else self.sizes[self.side]))
        for start in range(0, max(self.sizes, default=0), BLOCK):
            for owner, own_places in zip(self.context.owners, places, strict=True):
                index = self.outside.index(owner.number) if owner.number in self.outside else None
                there = own_places[start : start + BLOCK]
                hand_over(self.trio, owner.number, index, mixed, there, self.spec.malicious)
            if self.side is not None:
                here = places[self.side][start : start + BLOCK]
                received[:, start : start + len(here)] = receive(self.trio, mixed, here, self.spec.malicious)
        return received

    def places(self, labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Of every owner, the places of the rows that bear its label."""
        if not np.array_equal(np.bincount(labels, minlength=len(self.sizes)), self.sizes):
            raise ProtocolAborted("The merged list is not made of the announced ones; start the run again.")
        return [np.flatnonzero(labels == side) for side in range(len(self.sizes))]

    def _label_mask(self) -> int:
        return int(index_reversed(np.array([(1 << label_bits(len(self.sizes))) - 1], np.uint64))[0])

    def _fresh(self, count: int) -> BitShare:
        """Shared uniform names nobody knows, lowest bit 0; local."""
        operation = self.trio.operation()
        drawn = BitShare(
            self.trio.own_mask(count, np.uint64, operation), self.trio.next_mask(count, np.uint64, operation)
        )
        return and_public(drawn, ~np.asarray(_FIRST))

    def _opened(self, words: BitShare) -> Words:
        out = np.empty_like(words.own)
        for block in blocks(len(words)):
            out[block] = open_bits(self.trio, words[block])
        return out

    def _opened_labels(self, words: BitShare) -> NDArray[np.int64]:
        """The owner of each row; a byte a row is opened."""
        count = len(words)
        packed = np.zeros_like(words.own, np.uint8, shape=(2, -(-count // 8) * 8))
        for out, part in zip(packed, (words.own, words.next), strict=True):
            out[:count] = index_reversed(part) & np.uint64((1 << label_bits(len(self.sizes))) - 1)
        return self._opened(BitShare(*packed.view(np.uint64))).view(np.uint8)[:count].astype(np.int64)
