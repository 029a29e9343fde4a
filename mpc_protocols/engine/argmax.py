"""Index of the largest of n shared keys, ties to the lower index, opening the index only (`mechanisms.md` 1.5).

All pairs p < q are compared at once: p beats q unless key_p - key_q is negative, so of equal keys the lower index wins and
exactly one candidate q has lost no comparison: its vector l_q of n - 1 loss bits is zero. That, and nothing else, is opened:

    e_q = XOR_p l_q[p] & R_q[p],    R_q[p] fresh shared random words of 128 bits that nobody knows (free)

Statement. If l_q = 0 then e_q = 0. Else e_q is uniform and independent of all else, since one of its R_q[p] with l_q[p] = 1 is:
a simulator that knows the index alone writes 0 there and random words elsewhere. e_q = 0 for a loser with probability 2^-128,
which the 2^-70 per candidate of `gumbel.BETA` covers with room to spare. A product summed before it travels costs its OUTPUT
only, so the opening is one round: the masked parts go straight to both others.

    rounds: 2 + ceil(log2(K - 1)) for the signs (tree), 1 to open: 8 for K = 32, whatever n is
    sent:   12 bytes a pair and party (P0: 16), and 32 a candidate

Of many candidates (`in_groups`: where bytes outweigh rounds, from some 450 on one machine), groups of GROUP first find their
winners, on shares: an AND over the opponents, the one-hot vector as ring elements, its dot product with the keys; the groups'
winners are compared as above, and of the winning group the place is opened. 17 rounds more, again whatever n is; about 500
bytes a candidate. The group's number and the place are the index: nothing else is opened.

Public bound, asserted by the caller: all differences of keys lie in [-2^(K-1), 2^(K-1)). Threat model, masking and
assumption: `trio`. All three learn the index; keys, margins, ties and every single comparison stay shared.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitslice import Words, from_bits, to_bits, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.replicated.sharing.boolean import BitShare, and_bits, complement, concatenate
from mpc_protocols.replicated.sharing.conversion import weighted_sum
from mpc_protocols.replicated.sharing.ring import RingShare, dot, open_ring, segment_sums
from mpc_protocols.replicated.sharing.sign import merge_schedule, signs
from mpc_protocols.replicated.sharing.trio import Trio

PAIRS = 1 << 20
"""Comparisons that go through the adder together: bounds the memory at about 100 MB; 1,448 candidates are one batch."""
TEST_WORDS = 2
"""Words of 64 bits in which a loser looks like a winner with probability 2^-128."""
_TESTED = 1 << 18  # random test words held at a time
_NO_CANDIDATE = "a selection opened to no candidate: a peer did not follow the protocol; stop the run"
GROUP = 64
"""Candidates of a group, a power of two."""


def in_groups(count: int, element: int, round_bytes: int) -> bool:
    """Whether so many keys of `element` bytes are compared in groups: the least rounds * round_bytes + bytes, in one batch."""
    steps = [8 * element - 1, *merge_schedule(8 * element - 1)]

    def comparisons(pairs: int) -> int:
        return -(-pairs // PAIRS) * (1 + len(steps)) * round_bytes + 8 * sum(steps) * words_for(pairs)

    groups = -(-count // GROUP)
    grouped = comparisons(groups * (GROUP * (GROUP - 1) // 2)) + comparisons(groups * (groups - 1) // 2)
    pairs = count * (count - 1) // 2
    return pairs > PAIRS or comparisons(pairs) > grouped + (GROUP.bit_length() + 3) * round_bytes


def argmax(trio: Trio, keys: RingShare) -> int:
    """Open the position of the largest of the shared keys, shape (n,), read as signed ring elements; 0 for n = 1."""
    if in_groups(len(keys), np.dtype(keys.dtype).itemsize, trio.round_bytes):
        return _argmax_in_groups(trio, keys)
    return int(argmax_rows(trio, keys.reshape(1, -1))[0])


def _argmax_in_groups(trio: Trio, keys: RingShare) -> int:
    """The winner of the groups' winners; the last group is filled with its last candidate, whose copies lose every tie."""
    groups = -(-len(keys) // GROUP)
    members = keys[np.minimum(np.arange(groups * GROUP), len(keys) - 1)]
    lost = _loss_vectors(trio, *_losses(trio, members.reshape(groups, GROUP)), slice(None), *_duels(GROUP))
    planes = [from_bits(np.moveaxis(bits, 2, 0).reshape(GROUP - 1, -1)) for bits in lost]
    standing = complement(trio, BitShare(*planes))
    while len(standing) > 1:
        half = len(standing) // 2
        merged = and_bits(trio, standing[:half], standing[half : 2 * half])
        standing = merged if len(standing) % 2 == 0 else concatenate([merged, standing[2 * half :]])
    flags = weighted_sum(trio, standing, (1,), len(members), keys.dtype).reshape(groups, GROUP)
    group = int(argmax_rows(trio, dot(trio, flags, members.reshape(groups, GROUP)).reshape(1, -1))[0])
    places = flags[group].scaled(np.arange(GROUP))
    place = open_ring(trio, segment_sums(places, np.array([GROUP])))
    position = group * GROUP + int(place[0])
    if position >= len(keys):
        raise ProtocolAborted(_NO_CANDIDATE)
    return position


def argmax_rows(trio: Trio, keys: RingShare) -> NDArray[np.int64]:
    """`argmax` of every row of keys of shape (rows, n), in the same rounds: int64 of shape (rows,)."""
    rows, count = keys.shape
    if count == 1:
        return np.zeros(rows, np.int64)
    own, following = _losses(trio, keys)
    parts = trio.zero_bits((rows, count, TEST_WORDS))
    operation = trio.operation()
    own_words, next_words = trio.own_reader(operation), trio.next_reader(operation)
    pair, lost = _duels(count)
    step = max(1, _TESTED // (TEST_WORDS * rows * (count - 1)))
    for start in range(0, count, step):
        block = slice(start, start + step)
        own_loss, next_loss = _loss_vectors(trio, own, following, block, pair, lost)
        shape = (*own_loss.shape, TEST_WORDS)
        secret, other = np.empty(shape, np.uint64), np.empty(shape, np.uint64)
        own_words.fill(secret)
        next_words.fill(other)
        other ^= secret
        other &= _spread(own_loss)
        secret &= _spread(next_loss)
        other ^= secret
        parts[:, block] ^= np.bitwise_xor.reduce(other, axis=2)
    winners = (_open_parts(trio, parts) == 0).all(axis=2)
    if not winners.any(axis=1).all():
        raise ProtocolAborted(_NO_CANDIDATE)
    index: NDArray[np.int64] = winners.argmax(axis=1)
    return index


def _losses(trio: Trio, keys: RingShare) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Both components of [key_p < key_q], p < q in the order of `np.triu_indices`: bits of shape (rows, pairs)."""
    rows, count = keys.shape
    planes = 8 * np.dtype(keys.dtype).itemsize
    left, right = _pairs(count)
    bits = np.empty((2, rows * len(left)), np.uint8)
    for start in range(0, bits.shape[1], PAIRS):
        piece = slice(start, min(start + PAIRS, bits.shape[1]))
        row, which = np.divmod(np.arange(piece.start, piece.stop), len(left))
        negative = signs(trio, keys[row, left[which]] - keys[row, right[which]], planes, "tree")
        bits[:, piece] = to_bits(np.stack((negative.own, negative.next)), piece.stop - piece.start)
    own, following = bits.reshape(2, rows, -1)
    return own, following


def _loss_vectors(
    trio: Trio,
    own: NDArray[np.uint8],
    following: NDArray[np.uint8],
    block: slice,
    pair: NDArray[np.intp],
    lost: NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Both components of the bits [candidate lost to opponent] for a block of candidates: (rows, block, count - 1)."""
    own_loss, next_loss = own[:, pair[block]], following[:, pair[block]]
    if trio.me == 0:  # the complement of a shared bit flips component 0
        own_loss ^= lost[block]
    elif trio.me == 2:
        next_loss ^= lost[block]
    return own_loss, next_loss


@lru_cache(maxsize=2)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Both candidates of every pair, the lower first. Kept, as `_duels`: a run asks again for as many candidates or nearly."""
    left, right = np.triu_indices(count, 1)
    return left, right


@lru_cache(maxsize=2)
def _duels(count: int) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """For every candidate and opponent: the number of their pair, and 1 if the pair's bit is the opponent's loss."""
    left, right = _pairs(count)
    numbers = np.zeros((count, count), np.intp)
    numbers[left, right] = numbers[right, left] = np.arange(len(left))
    candidate = np.arange(count)[:, np.newaxis]
    opponent = np.arange(count - 1) + (np.arange(count - 1) >= candidate)
    return numbers[candidate, opponent], (opponent < candidate).astype(np.uint8)


def _spread(bits: NDArray[np.uint8]) -> Words:
    """All ones where a bit is 1, with an axis for the words of a test."""
    return np.negative(bits.astype(np.uint64))[..., np.newaxis]


def _open_parts(trio: Trio, parts: Words) -> Words:
    """XOR of the three parties' masked parts, revealed to all. 1 round, their size to either neighbour."""
    for peer in (trio.left, trio.right):
        trio.send(peer, parts)
    trio.turn()
    opened: Words = (
        parts
        ^ trio.receive(trio.left, parts.shape, np.uint64)
        ^ trio.receive(trio.right, parts.shape, np.uint64)
    )
    return opened
