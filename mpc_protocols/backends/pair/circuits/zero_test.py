"""Which of many secret bit vectors are zero, and nothing else about them.

Problem: cells c with shared bits l_1 .. l_n; open whether all of them are 0. With words R_p of 128 random
bits of which nobody knows any,

    z = XOR_p l_p R_p        is 0 if all l_p are 0, else uniform

(`docs/design/mechanisms.md` 1.5; docs of `engine.argmax`). R = D_0 ^ D_1, with D_i the difference of both
strings of a random transfer that party i offers, so of l_p R_p = (l_0 ^ l_1)(D_0 ^ D_1) only the choices are
corrected: e = l_i ^ a_i. Party i's share is

    l_i D_i  ^  m[a]  ^  m'[0] ^ e_peer D_i

Who learns what: which vectors are zero. A simulator that knows it writes 0 or uniform words for z, and the
peer's share is z without its own. A vector that is not zero passes with probability 2^-128. Threat model:
`ot_extension`. Cost: 2 rounds or more; 1 bit a bit and 16 bytes a vector from each party, besides a transfer
each way a bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.bit_matrix import LANES, cells_of
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bitslice import Words

_SHIFTS = np.arange(LANES, dtype=np.uint64).reshape(LANES, 1, 1)
_TESTED = 1 << 12  # words of transfers that are worked on together: some 20 MB


def zero_pieces(planes: int, words: int) -> list[int]:
    """Planes of each message of corrections."""
    step = max(1, _TESTED // max(1, words))
    return [min(step, planes - start) for start in range(0, planes, step)]


def zero_demand(planes: int, words: int) -> Demand:
    """Transfers for so many planes."""
    return Demand(rows=(planes * words, planes * words))


def zero_cells(transfers: Transfers, bits: Words, cells: int) -> NDArray[np.bool_]:
    """Open whether every plane of shape (planes, words) is 0 in a cell: bool of shape (cells,).

    1 round for each message of corrections (`zero_pieces`), and 1.
    """
    planes, words = bits.shape
    transfers.reserve(zero_demand(planes, words))
    masked = np.zeros((LANES, words, 2), np.uint64)
    start = 0
    for count in zero_pieces(planes, words):
        masked ^= _masked_sum(transfers, bits[start : start + count])
        start += count
    part = contiguous(cells_of(masked, cells))
    opened = part ^ transfers.link.exchange(part)
    zero: NDArray[np.bool_] = (opened == 0).all(axis=1)
    return zero


def _masked_sum(transfers: Transfers, bits: Words) -> Blocks:
    """This party's share of the XOR over planes of l_p R_p: rows (64, words, 2)."""
    chosen, offered = transfers.chosen_rows(bits.size), transfers.offered_rows(bits.size)
    flips = transfers.link.exchange(bits ^ chosen.choices.reshape(bits.shape)) ^ bits
    selected = np.negative((flips[np.newaxis] >> _SHIFTS) & np.uint64(1))  # all ones where l_i ^ e_peer is 1
    shape = (LANES, *bits.shape, 2)
    parts = offered.difference.reshape(shape) & selected[..., np.newaxis]
    parts ^= chosen.values.reshape(shape)
    parts ^= offered.base.reshape(shape)
    total: Blocks = np.bitwise_xor.reduce(parts, axis=1)
    return total
