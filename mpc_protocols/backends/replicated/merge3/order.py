"""Whether owners' shared lists are in order, a word of ones each if so (`merge3`, where a computing party may
deviate).

A list that is not sorted merges wrongly, and whether that shows depends on the other lists. So every list is
looked at by itself, before anything is opened: neighbours are compared, and the results of a list ANDed
together to one word.

    distinct    every word is greater than the one before
    twice       no word is smaller than the one before, and every word is greater than the last but one: dummies may occur twice

An honest owner's list is in order whatever it holds, so what is opened tells nothing of it. A list of one
word is in order.

Rounds: 7 a batch of comparisons, lg of the words of flags. 19.6 bytes a word, or twice that. Threat model:
that of the gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import ALL, BitShare
from mpc_protocols.backends.replicated.sorting.comparison import greater
from mpc_protocols.backends.replicated.sorting.grouping import BATCH, filled, packed
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import words_for


def passes(size: int, twice: bool) -> list[tuple[int, bool]]:
    """Of a list: (distance of the words compared, whether the later one must be greater) of each of its
    passes."""
    every = [(1, False), (2, True)] if twice else [(1, True)]
    return [(distance, strict) for distance, strict in every if size > distance]


def in_order(gates: TrioBitGates, lists: Sequence[BitShare], twice: bool) -> BitShare:
    """Shape (lists,): a word of ones for each list that is in order."""
    flags = [list(_flags(gates, words, twice)) for words in lists]
    width = max(1, max(sum(map(len, of)) for of in flags))
    standing = concatenate(
        [_padded(gates, concatenate(of) if of else _zeros(0), width).reshape(1, width) for of in flags]
    )
    while (width := standing.shape[1]) > 1:
        half = width // 2
        both = gates.and_bits(standing[:, :half], standing[:, half : 2 * half])
        if width % 2:
            last = standing[:, 2 * half :]
            both = BitShare(
                *(np.concatenate(parts, axis=1) for parts in zip(both.parts, last.parts, strict=True))
            )
        standing = both
    return standing.reshape(len(lists))


def _flags(gates: TrioBitGates, words: BitShare, twice: bool) -> Iterator[BitShare]:
    """Packed flags of the passes over a list: ones where words are in order, and after the end."""
    for distance, strict in passes(len(words), twice):
        for start in range(distance, len(words), BATCH):
            stop = min(start + BATCH, len(words))
            later, earlier = (filled(words[start - back : stop - back]) for back in (0, distance))
            flags = (
                greater(gates, later, earlier) if strict else gates.complement(greater(gates, earlier, later))
            )
            count = stop - start
            ends = np.packbits(np.arange(64 * words_for(count)) >= count)
            yield gates.xor_public(packed(flags[:count]), ends.view(np.uint64))


def _padded(gates: TrioBitGates, flags: BitShare, width: int) -> BitShare:
    more = width - len(flags)
    return concatenate([flags, gates.xor_public(_zeros(more), np.full(more, ALL))]) if more else flags


def _zeros(count: int) -> BitShare:
    return BitShare(np.zeros(count, np.uint64), np.zeros(count, np.uint64))
