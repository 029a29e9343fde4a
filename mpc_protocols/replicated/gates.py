"""Replicated arithmetic as the shared code of the engine uses it (`engine.interface.Gates`), and the arg max of many candidates.

Of many candidates (`in_groups`: where bytes outweigh rounds, from some 450 on one machine), groups of GROUP first find their
winners, on shares: an AND over the opponents, the one-hot vector as ring elements, its dot product with the keys; the groups'
winners are compared as in `engine.argmax`, and of the winning group the place is opened. 17 rounds more than there, whatever n
is; about 500 bytes a candidate. The group's number and the place are the index: nothing else is opened.

    arg max, all pairs: 8 rounds for 32-bit keys; 12 bytes a pair and party (P0: 16), and 32 a candidate

Threat model, masking and assumption: `trio`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.adders import adder_for, merge_schedule
from mpc_protocols.engine.bitwise.argmax import PAIRS, argmax_rows, loss_vectors, losses, peel
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import UInt, from_bits, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.replicated.sharing import conversion, ring
from mpc_protocols.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.replicated.sharing.boolean import BitShare
from mpc_protocols.replicated.sharing.ring import RingShare
from mpc_protocols.replicated.sharing.sign import signs

GROUP = 64
"""Candidates of a group, a power of two."""
ONE_BY_ONE_ROUNDS, ONE_BY_ONE_BYTES = 23, 500
"""What a pick of its own costs among many candidates, about; bytes are a candidate's."""


class TrioGates(TrioBitGates):
    """The gates of a trio."""

    def weighted_sum(self, bits: BitShare, weights: Sequence[int], cells: int, ring: UInt) -> RingShare:
        return conversion.weighted_sum(self.trio, bits, weights, cells, ring)

    def add_public(self, x: RingShare, public: NDArray[Any]) -> RingShare:
        return ring.add_public(self.trio, x, public)

    def scaled(self, x: RingShare, factor: int) -> RingShare:
        return x.scaled(factor)

    def concatenate(self, numbers: Sequence[RingShare]) -> RingShare:
        return ring.concatenate(list(numbers))

    def negative(self, x: RingShare) -> BitShare:
        """See `engine.interface.Gates`; the cheaper adder."""
        planes = 8 * np.dtype(x.dtype).itemsize
        return signs(self.trio, x, planes, adder_for(planes - 1, words_for(len(x)), self.trio.latency_bytes))

    def less(self, left: RingShare, right: RingShare) -> BitShare:
        planes = 8 * np.dtype(left.dtype).itemsize
        return signs(self.trio, left - right, planes, "tree")


def in_groups(count: int, element: int, latency_bytes: int) -> bool:
    """Whether so many keys of `element` bytes are compared in groups: the least rounds * latency_bytes + bytes, in one batch."""
    steps = [8 * element - 1, *merge_schedule(8 * element - 1)]

    def comparisons(pairs: int) -> int:
        return -(-pairs // PAIRS) * (1 + len(steps)) * latency_bytes + 8 * sum(steps) * words_for(pairs)

    groups = -(-count // GROUP)
    grouped = comparisons(groups * (GROUP * (GROUP - 1) // 2)) + comparisons(groups * (groups - 1) // 2)
    pairs = count * (count - 1) // 2
    return pairs > PAIRS or comparisons(pairs) > grouped + (GROUP.bit_length() + 3) * latency_bytes


def argmax(gates: TrioGates, keys: RingShare) -> int:
    """Open the position of the largest of the shared keys, shape (n,), read as signed ring elements; 0 for n = 1."""
    if in_groups(len(keys), np.dtype(keys.dtype).itemsize, gates.latency_bytes):
        return _argmax_in_groups(gates, keys)
    return int(argmax_rows(gates, keys.reshape(1, -1))[0])


def one_by_one(picks: int, count: int, element: int, latency_bytes: int) -> bool:
    """Whether so many picks of `count` keys are made one after the other in groups, not from all comparisons at once."""
    if not in_groups(count, element, latency_bytes):
        return False
    steps = [8 * element - 1, *merge_schedule(8 * element - 1)]
    pairs = picks * (count * (count - 1) // 2)
    together = -(-pairs // PAIRS) * (1 + len(steps)) * latency_bytes + 8 * sum(steps) * words_for(pairs)
    return together > picks * (ONE_BY_ONE_ROUNDS * latency_bytes + ONE_BY_ONE_BYTES * count)


def pick_several(
    gates: TrioGates,
    keys: RingShare,
    candidates: Callable[[Sequence[int]], Sequence[int]],
    members: Sequence[int],
) -> list[int]:
    """As `engine.bitwise.argmax.peel`. Of many candidates each pick is an arg max of its own, on the list that the earlier ones
    leave: bytes grow with candidates and no longer with their pairs, rounds with the picks."""
    rows, count = keys.shape
    if not one_by_one(rows, count, np.dtype(keys.dtype).itemsize, gates.latency_bytes):
        return peel(gates, keys, candidates, members)
    column = {member: place for place, member in enumerate(members)}
    picked: list[int] = []
    while len(picked) < rows and (left := candidates(picked)):
        places = np.array([column[member] for member in left])
        picked.append(left[argmax(gates, keys[len(picked)][places])])
    return picked


def _argmax_in_groups(gates: TrioGates, keys: RingShare) -> int:
    """The winner of the groups' winners; the last group is filled with its last candidate, whose copies lose every tie."""
    groups = -(-len(keys) // GROUP)
    members = keys[np.minimum(np.arange(groups * GROUP), len(keys) - 1)]
    lost = loss_vectors(gates, losses(gates, members.reshape(groups, GROUP)), GROUP)
    planes = [from_bits(np.moveaxis(bits, 2, 0).reshape(GROUP - 1, -1)) for bits in lost.parts]
    standing = gates.complement(BitShare(*planes))
    while len(standing) > 1:
        half = len(standing) // 2
        merged = gates.and_bits(standing[:half], standing[half : 2 * half])
        standing = merged if len(standing) % 2 == 0 else concatenate([merged, standing[2 * half :]])
    flags = gates.weighted_sum(standing, (1,), len(members), keys.dtype).reshape(groups, GROUP)
    winners = ring.dot(gates.trio, flags, members.reshape(groups, GROUP))
    group = int(argmax_rows(gates, winners.reshape(1, -1))[0])
    places = flags[group].scaled(np.arange(GROUP))
    place = ring.open_ring(gates.trio, ring.segment_sums(places, np.array([GROUP])))
    position = group * GROUP + int(place[0])
    if position >= len(keys):
        raise ProtocolAborted(
            "A selection opened to no candidate: a peer did not follow the protocol; stop the run."
        )
    return position
