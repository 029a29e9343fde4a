"""Oblivious merging: sorted lists of shared 64-bit words become one (Batcher 1968, the bitonic merger;
`docs/design/psu.md` 2.2).

Two sorted lists laid out as (first, descending)(second, ascending) form a bitonic sequence; comparing the
elements i and i + d for d = 2^k, .., 2, 1 and exchanging where the first is greater sorts it, whatever the
values: no message and no step depends on them. The sequence is padded by a virtual +infinity up to the next
power of two; a comparator that would meet it does nothing and is left out, so a merge of n words takes about
(n / 2) log2 n comparators. More than two lists are merged in a tree, the shorter ones first; the merges of
one depth run in the same rounds.

    comparator    `comparison.greater` and one AND of 64 bits: 8 rounds, 27.6 bytes a party
    rounds        8 ceil(log2 n) a depth of the tree, times the number of batches of a level

Only words travel through the network: a label that must stay with its key is a part of the word. Elements
closer than 64 places are compared in a transposed layout, so every step works on long contiguous runs. A
level goes in batches of BATCH comparators; memory is two components of 8 bytes an element (a copy while the
layout changes) and some 150 bytes a comparator of ONE batch.

Correct if the lists are sorted in the order of `comparison` (a list that is not gives a sequence that is not,
unnoticed). Threat model, masking and assumption: `trio`. The lengths are public; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import ALL, BitShare
from mpc_protocols.backends.replicated.sorting.comparison import greater
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bitslice import Words

BATCH = 1 << 18
"""Comparators of one batch."""
ROW = 64
"""Elements nearer than this are compared in the transposed layout; lengths are padded to multiples of it."""
_NEAR = 6


@dataclass(frozen=True)
class Piece:
    """Some comparators of a level: `rows` runs of `columns` pairs (i, i + distance), the runs 2 * distance
    apart."""

    start: int
    rows: int
    columns: int
    distance: int

    @property
    def count(self) -> int:
        """Comparators."""
        return self.rows * self.columns

    def ends(self, x: Words) -> tuple[Words, Words]:
        """Views of the lower and upper elements in x of shape (2, n): shape (2, rows, columns) each."""
        lower, upper = self.start, self.start + self.distance
        if self.rows == 1:
            return x[:, None, lower : lower + self.columns], x[:, None, upper : upper + self.columns]
        stride = 2 * self.distance
        blocks = x[:, lower : lower + self.rows * stride].reshape(2, self.rows, 2, self.distance)
        return blocks[:, :, 0], blocks[:, :, 1]


def pieces(length: int, distance: int, limit: int) -> Iterator[Piece]:
    """All comparators (i, i + distance) with bit `distance` of i clear and i + distance < length, at most
    `limit` at a time."""
    blocks = length // (2 * distance)
    if distance < limit:
        step = limit // distance
        for block in range(0, blocks, step):
            yield Piece(block * 2 * distance, min(step, blocks - block), distance, distance)
    else:
        for block in range(blocks):
            yield from _run(block * 2 * distance, distance, distance, limit)
    yield from _run(blocks * 2 * distance, length - blocks * 2 * distance - distance, distance, limit)


def _run(start: int, count: int, distance: int, limit: int) -> Iterator[Piece]:
    for offset in range(0, max(0, count), limit):
        yield Piece(start + offset, 1, min(limit, count - offset), distance)


def levels(length: int) -> list[int]:
    """Distances of a merge of so many elements, a multiple of ROW; those below ROW are distances in the
    transposed layout."""
    if not length:
        return []
    distances = [ROW << k for k in range(length.bit_length()) if ROW << k < length]
    return distances[::-1] + [length // ROW * (ROW >> k) for k in range(1, 7)]


def padded(length: int) -> int:
    """Up to a multiple of ROW, the length in memory."""
    return -(-length // ROW) * ROW


def depths(lengths: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """The tree: for each depth, which lists (positions in the depth before) are joined, two or one alone."""
    tree = []
    sizes = list(lengths)
    while len(sizes) > 1:
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        joined = [tuple(order[i : i + 2]) for i in range(0, len(order), 2)]
        tree.append(joined)
        sizes = [sum(sizes[i] for i in group) for group in joined]
    return tree


def schedule(lengths: Sequence[int], limit: int) -> Iterator[tuple[int, list[tuple[int, Piece]]]]:
    """Batches of the merges of one depth, of results of these lengths: (levels left, [(which merge, piece),
    ..]).

    The merges end together; the last six levels are those in the transposed layout.
    """
    plans = [levels(padded(length)) for length in lengths]
    for left in range(max(map(len, plans), default=0), 0, -1):
        batch: list[tuple[int, Piece]] = []
        size = 0
        for which, (plan, length) in enumerate(zip(plans, lengths, strict=True)):
            for piece in pieces(padded(length), plan[-left], limit) if left <= len(plan) else ():
                if size + piece.count > limit:
                    yield left, batch
                    batch, size = [], 0
                batch.append((which, piece))
                size += piece.count
        yield left, batch


def comparators(batch: Sequence[tuple[int, Piece]]) -> int:
    """Comparators of a batch, filled up to whole planes."""
    return padded(sum(piece.count for _, piece in batch))


def merge(gates: TrioBitGates, lists: Sequence[BitShare], limit: int = BATCH) -> BitShare:
    """One list of all words of the sorted lists, of shape (n,) each: ascending in the order of `comparison`."""
    current = list(lists)
    for joined in depths([len(x) for x in lists]):
        made = iter(
            _merge_pairs(
                gates, [(current[group[0]], current[group[1]]) for group in joined if len(group) == 2], limit
            )
        )
        current = [next(made) if len(group) == 2 else current[group[0]] for group in joined]
    return current[0]


def _merge_pairs(
    gates: TrioBitGates, pairs: Sequence[tuple[BitShare, BitShare]], limit: int
) -> list[BitShare]:
    """Merges of two lists each, all in the same rounds."""
    lengths = [len(a) + len(b) for a, b in pairs]
    states = [_bitonic(gates, a, b) for a, b in pairs]
    straight = True
    for left, batch in schedule(lengths, limit):
        if straight and left == _NEAR:
            states = [_transposed(x, x.shape[1] // ROW, ROW) for x in states]
            straight = False
        _exchange(gates, states, batch)
    states = [_transposed(x, ROW, x.shape[1] // ROW) for x in states]
    return [BitShare(x[0, :length], x[1, :length]) for x, length in zip(states, lengths, strict=True)]


def _bitonic(gates: TrioBitGates, first: BitShare, second: BitShare) -> Words:
    """(first, descending)(second, ascending)(+infinity up to a multiple of ROW): both components, shape (2,
    n)."""
    length = len(first) + len(second)
    x = np.zeros_like(first.own, shape=(2, padded(length)))
    for part, a, b in zip(x, (first.own, first.next), (second.own, second.next), strict=True):
        part[: len(first)], part[len(first) : length] = a[::-1], b
    if gates.trio.me != 1:
        x[0 if gates.trio.me == 0 else 1, length:] = ALL
    return x


def _transposed(x: Words, rows: int, columns: int) -> Words:
    return contiguous(x.reshape(2, rows, columns).transpose(0, 2, 1)).reshape(2, -1)


def _exchange(gates: TrioBitGates, states: Sequence[Words], batch: Sequence[tuple[int, Piece]]) -> None:
    """The comparators of one batch, in place."""
    ends = [piece.ends(states[which]) for which, piece in batch]
    operands = np.zeros_like(states[0], shape=(2, 2, comparators(batch)))
    start = 0
    for pair in ends:
        stop = start + pair[0].shape[1] * pair[0].shape[2]
        for operand, view in zip(operands, pair, strict=True):
            operand[:, start:stop].reshape(view.shape)[...] = view
        start = stop
    a, b = (BitShare(own, following) for own, following in operands)
    moved = gates.and_bits(greater(gates, a, b), a ^ b)
    start = 0
    for pair in ends:
        stop = start + pair[0].shape[1] * pair[0].shape[2]
        for part, difference in enumerate((moved.own, moved.next)):
            for view in pair:
                view[part] ^= difference[start:stop].reshape(view.shape[1:])
        start = stop
