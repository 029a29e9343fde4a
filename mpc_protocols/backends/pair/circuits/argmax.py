"""Index of the largest of many shared keys between two parties: all pairs at once, or in groups where that
sends less.

All pairs: `engine.argmax`. Of many candidates, groups of GROUP first find their winners, on shares:

    standing    AND over the opponents of what was not lost: the one-hot vector of each group
    winners     the one-hot vector times the keys (`conversion.masked_numbers`), summed by group

then the winners are compared as above, and of the winning group the place is opened: the XOR of the numbers
of its one-hot vector's bits, 1 byte. The group's number and the place are the index; nothing else is opened.
Ties go to the lower index, as the first group wins among equal winners and the first candidate within a
group. The last group is filled with its last candidate, whose copies lose every tie.

Cost: some 90 bytes a pair and party (ripple), 100 with a tree; 62 ANDs a candidate in groups, and 9 rounds
more. Threat model: `gmw`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from mpc_protocols.backends.pair.circuits.conversion import masked_numbers
from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.circuits.gmw import and_bits
from mpc_protocols.backends.pair.circuits.sign import (
    AND_BYTES,
    BYTE_WORTH,
    CHUNK,
    carry_demand,
    score_adder,
    signs_cost,
)
from mpc_protocols.backends.pair.circuits.zero_test import zero_demand
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.argmax import argmax_rows, loss_vectors, losses
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, from_bits, to_bits, words_for
from mpc_protocols.errors import ProtocolAborted

GROUP = 64
"""Candidates of a group, a power of two."""
_MORE_ROUNDS = 9
_STANDING = BYTE_WORTH * AND_BYTES * (GROUP - 2)
"""Worth of a word of candidates for the AND over their opponents."""


def in_groups(count: int, element: int, latency_bytes: int) -> bool:
    """Whether so many keys of `element` bytes are compared in groups: the least rounds * latency_bytes +
    bytes' worth."""

    def comparisons(pairs: int) -> float:
        batches = -(-pairs // CHUNK)
        return signs_cost(8 * element, words_for(pairs), latency_bytes) + (batches - 1) * latency_bytes

    groups = -(-count // GROUP)
    pairs = count * (count - 1) // 2
    grouped = comparisons(groups * (GROUP * (GROUP - 1) // 2)) + comparisons(groups * (groups - 1) // 2)
    more = _MORE_ROUNDS * latency_bytes + _STANDING * words_for(groups * GROUP)
    return groups > 1 and comparisons(pairs) > grouped + more


def picks_demand(count: int, picks: int, element: int, latency_bytes: int) -> Demand:
    """Transfers for comparing so many keys of `element` bytes for each pick, and for opening the first; nothing where
    they are compared in groups or piece by piece."""
    pairs = picks * count * (count - 1) // 2
    if pairs > CHUNK or (picks == 1 and in_groups(count, element, latency_bytes)):
        return Demand()
    words, planes = words_for(pairs), 8 * element
    adder = score_adder(planes, words, latency_bytes)
    return carry_demand(planes - 1, words, adder) + zero_demand(count - 1, words_for(count))


def argmax(gates: PairGates, keys: Elements) -> int:
    """Open the position of the largest of the keys, shape (n,), read as signed ring elements; 0 for n = 1.

    Raises `ProtocolAborted` if it opens to no candidate.
    """
    if in_groups(len(keys), keys.itemsize, gates.link.latency_bytes):
        return argmax_in_groups(gates, keys)
    row: Any = keys.reshape(1, -1)
    return int(argmax_rows(gates, row)[0])


def argmax_in_groups(gates: PairGates, keys: Elements) -> int:
    """As `argmax`, in groups."""
    groups = -(-len(keys) // GROUP)
    members: Any = keys[np.minimum(np.arange(groups * GROUP), len(keys) - 1)]
    lost: Bits = loss_vectors(cast(Any, gates), losses(gates, members.reshape(groups, GROUP)), GROUP)
    planes = from_bits(np.moveaxis(lost.parts[0], 2, 0).reshape(GROUP - 1, -1))
    (standing,) = gates.complement(Bits(planes)).parts
    while len(standing) > 1:
        half = len(standing) // 2
        merged = and_bits(gates.transfers, standing[:half], standing[half : 2 * half])
        standing = np.concatenate((merged, standing[2 * half :]))
    winners = masked_numbers(gates.transfers, standing[0], members)
    best: Any = winners.reshape(groups, GROUP).sum(axis=1, dtype=winners.dtype)
    group = int(argmax_rows(gates, best.reshape(1, -1))[0])
    flags = to_bits(standing[0], groups * GROUP, np.uint8)[group * GROUP : (group + 1) * GROUP]
    place = np.bitwise_xor.reduce(flags * np.arange(GROUP, dtype=np.uint8), keepdims=True)
    position = group * GROUP + int((place ^ gates.link.exchange(place))[0])
    if position >= len(keys):
        raise ProtocolAborted(
            "A selection opened to no candidate: a peer did not follow the protocol; stop the run."
        )
    return position
