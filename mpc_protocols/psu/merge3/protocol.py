"""merge3: private set union of two to eight owners inside the three-party replicated engine (`docs/design/psu.md` 2.2). The
default there.

Owners may compute or only contribute; computing parties may own nothing. With N = sum of the announced list lengths N_i:

    announce   every owner -> computing parties: N_i and the types of its key columns; the three compare what they were told
    share      the owners' sorted keys (`keys`) as XOR shares, 8 bytes a key (`lists`); the computing parties set each list's
               public label, the owner's number, in the low bits of its words
    merge      `replicated.merging`
    name       `replicated.grouping`: who repeats the one before; fresh shared names rho_t (free); a group gets its first one's
    union      `replicated.shuffle` of rho_t with "repeats" as lowest bit; opened. Those of firsts, sorted, are U
    deliver    another, independent shuffle of (word, name); labels are opened, then each row's owner gets the rest of that row

Who learns what: everybody all N_i and u, an owner also its own rows; the proof, what a liar can do, and figures: there. Threat
model: semi-honest, at most one of the three computing parties corrupted, with any number of contributors. Assumption: `prg`.
Cost: `cost`; 160 bytes of memory an entry of all lists at a computing party.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.dummies import list_size, longest_list
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.identifiers.normalise import KINDS
from mpc_protocols.psu.merge3.keys import Keys, keys_of, label_bits, recognised
from mpc_protocols.psu.merge3.lists import BLOCK, Input, blocks, send_list
from mpc_protocols.replicated.sharing.boolean import BitShare, and_public, open_bits, xor_public
from mpc_protocols.replicated.sharing.copies import same_copies
from mpc_protocols.replicated.sharing.trio import Trio
from mpc_protocols.replicated.sorting.comparison import index_reversed
from mpc_protocols.replicated.sorting.grouping import repeats, spread
from mpc_protocols.replicated.sorting.merging import merge
from mpc_protocols.replicated.sorting.shuffle import shuffle
from mpc_protocols.wire import Wire

STREAM = "align"
COUNT_BYTES, DIGEST_BYTES = 8, 32
MAX_COLUMNS = 255
_FIRST = np.uint64(1)  # a name's lowest bit: set where it repeats the one before


def align(
    wire: Wire, entries: Sequence[bytes] | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
) -> Alignment:
    """One party's part. entries: an owner's canonical identifiers and dummies, kinds: its key columns' types; None without data.

    Raises `ProtocolAborted` (a size that is not allowed, columns of different types, parties that were told different things).
    """
    own = (
        None
        if entries is None
        else keys_of(entries, context.salt(spec, wire.session_id), len(context.owners))
    )
    stream = wire.fork(STREAM)
    if wire.me < wire.computing:
        return ComputingParty(stream, own, kinds, spec, context).run()
    if own is None:
        raise ValueError(f"Party {wire.me} neither computes nor owns anything.")
    return contribute(stream, own, kinds, spec, context)


class ComputingParty:
    """One of the three; the methods are the steps, in order."""

    def __init__(
        self, wire: Wire, own: Keys | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
    ) -> None:
        self.wire, self.own, self.kinds, self.spec, self.context = wire, own, kinds, spec, context
        self.sid = context.salt(spec, wire.session_id)
        self.trio = Trio(wire, STREAM)
        self.side = context.side(wire.me)
        self.outside = [owner.number for owner in context.owners if owner.number >= wire.computing]

    def run(self) -> Alignment:
        """The whole protocol."""
        self.announce()
        words = merge(self.trio, self.share())
        named, union = self.name(words)
        table = table_digest(self.sid, self.sizes, union)
        self.compare(table, "did not arrive at the same union")
        received = self.deliver(shuffle(self.trio, [words, named]), union, table)
        rows = (
            np.zeros(0, np.int64)
            if self.own is None
            else recognised(self.own, received, union, len(self.sizes))
        )
        return Alignment(len(union), rows, table)

    def announce(self) -> None:
        """Sizes and types of all owners, checked before anything is allocated; the same at all three."""
        mine = b"" if self.own is None else announcement(self.own, self.kinds)
        if self.own is not None:
            for peer in (self.trio.left, self.trio.right):
                self.wire.send(peer, mine)
        announcements = [
            mine
            if side == self.side
            else bytes(self.wire.receive_up_to(owner.number, COUNT_BYTES + MAX_COLUMNS))
            for side, owner in enumerate(self.context.owners)
        ]
        self.sizes = [self._size(side, payload) for side, payload in enumerate(announcements)]
        self._check_kinds([payload[COUNT_BYTES:] for payload in announcements])
        self.compare(
            digest(b"psu merge3 sizes", self.sid, *announcements), "was told other sizes or column types"
        )

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

    def name(self, words: BitShare) -> tuple[BitShare, Words]:
        """The name of every word's group, shared; and all groups' names, opened to the three and sorted."""
        repeated = repeats(self.trio, words, self._label_mask())
        drawn = self._fresh(len(words))
        named = spread(self.trio, drawn, repeated, max(2, len(self.sizes)))
        (mixed,) = shuffle(self.trio, [drawn ^ and_public(repeated, np.asarray(_FIRST))], first=1)
        opened = self._opened(mixed)
        union = np.sort(opened[opened & _FIRST == 0])
        if (union[1:] == union[:-1]).any():
            raise ProtocolAborted("Two records drew the same name by chance; start the run again.")
        return named, union

    def deliver(self, mixed: Sequence[BitShare], union: Words, table: bytes) -> Words:
        """Every row of words and names, which are in a secret order, to its owner; this party's own, shape (2, n)."""
        labels = self._opened_labels(mixed[0])
        if not np.array_equal(np.bincount(labels, minlength=len(self.sizes)), self.sizes):
            raise ProtocolAborted("The merged list is not made of the announced ones; start the run again.")
        for outsider in self.outside:
            self.wire.send(outsider, table)
            if self.wire.me == self._holders(outsider)[2]:
                self.wire.send(
                    outsider,
                    b"".join(size.to_bytes(COUNT_BYTES, "big") for size in (*self.sizes, len(union))),
                )
                for block in blocks(len(union)):
                    self.trio.send(outsider, union[block])
        places = [np.flatnonzero(labels == side) for side in range(len(self.sizes))]
        received = np.empty((2, 0 if self.side is None else self.sizes[self.side]), np.uint64)
        for start in range(0, max(self.sizes, default=0), BLOCK):
            for owner, own_places in zip(self.context.owners, places, strict=True):
                self._hand_over(owner.number, mixed, own_places[start : start + BLOCK])
            if self.side is not None:
                here = places[self.side][start : start + BLOCK]
                part = self.trio.receive(self.trio.right, (2, len(here)), np.uint64)
                for column, share, rest in zip(received, mixed, part, strict=True):
                    column[start : start + len(here)] = share.own[here] ^ share.next[here] ^ rest
        return received

    def compare(self, value: bytes, what: str) -> None:
        """Raise `ProtocolAborted` unless the other two hold the same 32 bytes."""
        other = self.trio.differing(value)
        if other is not None:
            raise ProtocolAborted(f"Party {self.context.name(other)} {what}; the alignment was stopped.")

    def _hand_over(self, owner: int, mixed: Sequence[BitShare], places: NDArray[np.int64]) -> None:
        """What an owner lacks of its rows: a computing one holds two components, a contributor none."""
        two, one = self._holders(owner)[:2] if owner >= self.wire.computing else (None, (owner + 1) % 3)
        if self.wire.me == two:
            self.trio.send(owner, np.stack([x.own[places] ^ x.next[places] for x in mixed]))
        elif self.wire.me == one:
            self.trio.send(owner, np.stack([x.next[places] for x in mixed]))

    def _holders(self, owner: int) -> tuple[int, int, int]:
        """The computing parties in their roles towards a contributor: they rotate."""
        return holders(self.outside.index(owner))

    def _size(self, side: int, payload: bytes) -> int:
        """An announced size that is allowed."""
        if len(payload) < COUNT_BYTES:
            raise ProtocolAborted(
                f"Party {self.context.owners[side].name} announced no size; the alignment was stopped."
            )
        count = int.from_bytes(payload[:COUNT_BYTES], "big")
        check_size(self.spec, self.context, side, count, self.context.owners[side].name)
        return count

    def _check_kinds(self, codes: Sequence[bytes]) -> None:
        """All owners hold the same types in their key columns: a number never equals a text that looks like it."""
        first = self.context.owners[0].name
        for owner, code in zip(self.context.owners, codes, strict=True):
            if len(code) != len(codes[0]) or any(kind >= len(KINDS) for kind in code):
                raise ProtocolAborted(
                    f"Party {owner.name} announced other key columns than party {first}; the alignment was "
                    "stopped."
                )
        for column, kinds in enumerate(zip(*codes, strict=True)):
            found = [
                (KINDS[kind], owner.name) for kind, owner in zip(kinds, self.context.owners, strict=True)
            ]
            typed = [pair for pair in found if pair[0] != "untyped"]
            for kind, name in typed[1:]:
                if kind != typed[0][0]:
                    raise ProtocolAborted(
                        f"Key column {column + 1} of the alignment holds {kind} at party {name} and "
                        f"{typed[0][0]} at party {typed[0][1]}; give all the same type."
                    )

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
        out = np.empty(len(words), np.uint64)
        for block in blocks(len(words)):
            out[block] = open_bits(self.trio, words[block])
        return out

    def _opened_labels(self, words: BitShare) -> NDArray[np.int64]:
        """The owner of each row; a byte a row is opened."""
        count = len(words)
        packed = np.zeros((2, -(-count // 8) * 8), np.uint8)
        for out, part in zip(packed, (words.own, words.next), strict=True):
            out[:count] = index_reversed(part) & np.uint64((1 << label_bits(len(self.sizes))) - 1)
        return self._opened(BitShare(*packed.view(np.uint64))).view(np.uint8)[:count].astype(np.int64)


def contribute(
    wire: Wire, own: Keys, kinds: Sequence[str], spec: AlignmentSpec, context: Context
) -> Alignment:
    """The part of an owner that does not compute: it shares its keys, and gets its rows and the union."""
    sid = context.salt(spec, wire.session_id)
    index = [owner.number for owner in context.owners if owner.number >= wire.computing].index(wire.me)
    size = len(own.words)
    for peer in range(3):
        wire.send(peer, announcement(own, kinds))
    send_list(wire, index, own.words)
    sum_of_two, third, teller = holders(index)
    tables = [bytes(wire.receive(peer, DIGEST_BYTES)) for peer in range(3)]
    counts = np.frombuffer(wire.receive(teller, COUNT_BYTES * (len(context.owners) + 1)), ">u8").tolist()
    sizes, count = counts[:-1], counts[-1]
    for side, announced in enumerate(sizes):
        check_size(spec, context, side, announced, context.name(teller))
    if sizes[context.side(wire.me) or 0] != size or not len(np.unique(own.words)) <= count <= sum(sizes):
        raise ProtocolAborted(
            f"Party {context.name(teller)} announced a union that does not fit the sets; the alignment was "
            "stopped."
        )
    union = np.empty(count, np.uint64)
    for block in blocks(count):
        union[block] = np.frombuffer(wire.receive(teller, union[block].nbytes), np.uint64)
    received = np.empty((2, size), np.uint64)
    for block in blocks(size):
        shape = received[:, block].shape
        parts = [
            np.frombuffer(wire.receive(peer, received[:, block].nbytes), np.uint64)
            for peer in (sum_of_two, third)
        ]
        received[:, block] = (parts[0] ^ parts[1]).reshape(shape)
    table = table_digest(sid, sizes, union)
    for peer, peers_table in enumerate(tables):
        if peers_table != table:
            raise ProtocolAborted(
                f"Party {context.name(peer)} did not arrive at the same union; the alignment was stopped."
            )
    return Alignment(count, recognised(own, received, union, len(context.owners)), table)


def check_size(spec: AlignmentSpec, context: Context, side: int, count: int, teller: str) -> None:
    """Abort unless the study allows an owner a list of `count` entries; before anything is allocated for it."""
    fixed = list_size(spec, side, len(context.owners))
    least, most = (
        (spec.min_size, longest_list(spec, len(context.owners))) if fixed is None else (fixed, fixed)
    )
    if not least <= count <= most:
        raise ProtocolAborted(
            f"Party {teller} announced a list of {count} entries where {least} to {most} are allowed; "
            "the alignment was stopped."
        )


def holders(index: int) -> tuple[int, int, int]:
    """Towards a contributor: who sends two components of its rows, who the third, and who the union."""
    return index % 3, (index + 1) % 3, (index + 2) % 3


def announcement(own: Keys, kinds: Sequence[str]) -> bytes:
    """An owner's first message."""
    return len(own.words).to_bytes(COUNT_BYTES, "big") + bytes(KINDS.index(kind) for kind in kinds)


def table_digest(sid: bytes, sizes: Sequence[int], union: Words) -> bytes:
    """32 bytes, equal exactly if sizes and union are."""
    return digest(b"psu union", sid, np.array(sizes, ">u8").tobytes(), union.data)
