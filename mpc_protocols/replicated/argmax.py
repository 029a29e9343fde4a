"""Index of the largest of n shared keys, ties to the lower index, opening the index only (`mechanisms.md` 1.5).

All pairs p < q are compared at once: p beats q unless key_p - key_q is negative, so of equal keys the lower index wins. The
winner is the one that beats all its opponents: an AND tree over the opponents gives a one-hot vector, of which the XOR of the
indices is opened.

    rounds: 2 + ceil(log2(K - 1)) for the signs (tree), ceil(log2(n - 1)) for the winner, 1 to open: 14 for n = 64, K = 32
    sent:   about 10 bytes a pair and party

Public bound, asserted by the caller: all differences of keys lie in [-2^(K-1), 2^(K-1)). Threat model, masking and
assumption: `trio`. All three learn the index; keys, margins, ties and every single comparison stay shared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.bitslice import Words, from_bits, to_bits
from mpc_protocols.replicated.boolean import BitShare, and_bits, complement, concatenate, open_bits
from mpc_protocols.replicated.ring import RingShare
from mpc_protocols.replicated.sign import signs
from mpc_protocols.replicated.trio import Trio


def argmax(trio: Trio, keys: RingShare) -> int:
    """Open the position of the largest of the shared keys, shape (n,), read as signed ring elements; 0 for n = 1."""
    count = len(keys)
    if count == 1:
        return 0
    left, right = np.triu_indices(count, 1)
    loses = signs(trio, keys[left] - keys[right], 8 * np.dtype(keys.dtype).itemsize, "tree")
    winners = _one_hot(trio, loses, left, right, count)
    return _open_index(trio, winners, count)


def _one_hot(trio: Trio, loses: BitShare, left: NDArray[np.int64], right: NDArray[np.int64], count: int) -> BitShare:
    """1 where a candidate beats all others: a plane over the candidates."""
    beats = complement(trio, loses)
    standing = BitShare(_duels(beats.own, loses.own, left, right, count), _duels(beats.next, loses.next, left, right, count))
    while len(standing) > 1:
        half = len(standing) // 2
        merged = and_bits(trio, standing[:half], standing[half:2 * half])
        standing = merged if len(standing) % 2 == 0 else concatenate([merged, standing[2 * half:]])
    return standing[0]


def _duels(beats: Words, loses: Words, left: NDArray[np.int64], right: NDArray[np.int64], count: int) -> Words:
    """One component's bits of the pairs as planes (count - 1, words): opponent by opponent, candidates along the words."""
    duels = np.zeros((count - 1, count), np.uint32)
    duels[right - 1, left] = to_bits(beats, len(left))  # candidate p meets q > p in row q - 1
    duels[left, right] = to_bits(loses, len(left))  # candidate q meets p < q in row p
    return from_bits(duels)


def _open_index(trio: Trio, winners: BitShare, count: int) -> int:
    """XOR of the positions set in the one-hot plane, opened; one word of 64 bits per party."""
    positions = np.arange(count, dtype=np.uint64)

    def index(plane: Words) -> Words:
        return np.bitwise_xor.reduce(positions * to_bits(plane, count, np.uint64), keepdims=True)

    return int(open_bits(trio, BitShare(index(winners.own), index(winners.next)))[0])
