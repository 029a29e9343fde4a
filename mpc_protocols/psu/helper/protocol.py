"""Private set union of two owners through a third party without data (`docs/design/psu.md` 2.4): nearly free.

The owners share a key K that the helper does not have (`wire.key`; bound to the session). Each sends the
helper its set as keyed hashes, shuffled:

    owner -> helper   16-byte BLAKE2b_K(x) for each own x, in random order
    helper            gives every distinct hash a row, in uniformly random order
    helper -> owner   the row of each of its hashes, in the order they came (4 bytes), and u
    owner <-> owner   hash of u, committed, then opened

An owner learns its own rows and u, exactly the functionality; names of rows are not needed, since the numbers
are random. The helper learns the sizes, u and so k; K keeps the identifiers from it, whatever their entropy.
Threat model: semi-honest, nobody colludes with the helper: helper and one owner together can search the
other's list through a dictionary, as two colluding computing parties could reveal it under the default model.
BLAKE2b keyed is a PRF. With three owners the helper would see pairwise overlaps: two owners only. A helper
that deviates can merge or part records (rows must still be distinct per owner), not learn them.

Cost: 1 us per identifier; an owner sends 16 n bytes and receives 4 n; 5 rounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.dummies import longest_list
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.groups.group import has_duplicates
from mpc_protocols.psu.groups.hashing import NAME_BYTES, digest, names
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.psu.two_owners.exchange import BLOCK, COUNT_BYTES, Exchange
from mpc_protocols.wire import Wire

ROW_BYTES = 4


def align(
    wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy = system
) -> Alignment:
    """One owner's part. entries: its distinct canonical identifiers. Raises `ProtocolAborted`."""
    helper = _helper(context)
    exchange = Exchange(wire, context, spec)
    n = len(entries)
    m, _ = exchange.announce(n)
    key = hashlib.blake2b(
        exchange.sid, key=wire.key(exchange.peer.number), digest_size=32, person=b"psu helper key"
    ).digest()
    order = permutation(n, entropy)
    hashed = names(key, b"psu helper tag", entries)[order]
    wire.send(helper.number, n.to_bytes(COUNT_BYTES, "big"))
    for start in range(0, n, BLOCK):
        wire.send(helper.number, hashed[start : start + BLOCK].tobytes())
    u = int.from_bytes(wire.receive(helper.number, COUNT_BYTES), "big")
    if not max(n, m) <= u <= n + m:
        raise ProtocolAborted(
            f"Party {helper.name} announced a union that does not fit the sets; the alignment was stopped."
        )
    shuffled = np.empty(n, np.int64)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        shuffled[start : start + size] = np.frombuffer(wire.receive(helper.number, size * ROW_BYTES), "<u4")
    if n and (shuffled.max() >= u or len(np.unique(shuffled)) != n):
        raise ProtocolAborted(
            f"Party {helper.name} sent rows that repeat or lie outside the table; the alignment was stopped."
        )
    rows = np.empty(n, np.int64)
    rows[order] = shuffled
    table = table_digest(exchange.sid, u)
    exchange.agree(table, "size of the union")
    return Alignment(u, rows, table)


def serve(wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy = system) -> int:
    """The helper's part; returns u. Raises `ProtocolAborted` if an owner's list is too short or long or has
    duplicates."""
    lists = []
    for owner in context.owners:
        count = int.from_bytes(wire.receive(owner.number, COUNT_BYTES), "big")
        if not spec.min_size <= count <= longest_list(spec):
            raise ProtocolAborted(
                f"Party {owner.name} announced a list of {count} entries where {spec.min_size} to "
                f"{longest_list(spec)} are allowed; the alignment was stopped."
            )
        hashed = np.empty((count, NAME_BYTES), np.uint8)
        for start in range(0, count, BLOCK):
            block = hashed[start : start + BLOCK]
            block[:] = np.frombuffer(wire.receive(owner.number, block.size), np.uint8).reshape(block.shape)
        if has_duplicates(hashed):
            raise ProtocolAborted(
                f"Party {owner.name} sent a list with duplicates; the alignment was stopped."
            )
        lists.append(hashed.view(f"S{NAME_BYTES}").reshape(-1))
    distinct, which = np.unique(np.concatenate(lists), return_inverse=True)
    rows = permutation(len(distinct), entropy)[which].astype("<u4")
    split = len(lists[0])
    for owner, own in zip(context.owners, (rows[:split], rows[split:]), strict=True):
        wire.send(owner.number, len(distinct).to_bytes(COUNT_BYTES, "big"))
        for start in range(0, len(own), BLOCK):
            wire.send(owner.number, own[start : start + BLOCK].tobytes())
    return len(distinct)


def table_digest(sid: bytes, union: int) -> bytes:
    """The digest of the common table, which here is its number of rows."""
    return digest(b"psu union", sid, union.to_bytes(COUNT_BYTES, "big"))


def _helper(context: Context) -> Member:
    if context.helper is None:
        raise ValueError("This alignment has no helper.")
    return context.helper


def cost(first: int, second: int) -> Cost:
    """Bytes, messages and rounds for the sizes of the two lists; no exponentiations. The union's size does
    not matter."""
    total = Cost()
    n = (first, second)
    total.swap(COUNT_BYTES)
    blocks = [[min(BLOCK, count - start) for start in range(0, count, BLOCK)] for count in n]
    for i in (0, 1):
        for size in (COUNT_BYTES, *(count * NAME_BYTES for count in blocks[i])):
            total.send(i, 2, size)
    for i in (0, 1):
        for _ in range(1 + len(blocks[i])):
            total.receive(2, i)
    for i in (0, 1):
        for size in (COUNT_BYTES, *(count * ROW_BYTES for count in blocks[i])):
            total.send(2, i, size)
    for i in (0, 1):
        for _ in range(1 + len(blocks[i])):
            total.receive(i, 2)
    total.agree()
    return total
