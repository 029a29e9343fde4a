"""Which of many secret bit vectors are zero, and nothing else about them.

Problem: cells c with shared bits l_1 .. l_n; open whether all of them are 0. With words R_p of 128 random bits of which nobody
knows any,

    z = XOR_p l_p R_p        is 0 if all l_p are 0, else uniform

(`mechanisms.md` 1.5; docs of `engine.argmax`). R = D_0 ^ D_1, with D_i the difference of both strings of a random transfer that
party i offers, so of l_p R_p = (l_0 ^ l_1)(D_0 ^ D_1) only the choices are corrected: e = l_i ^ a_i. Party i's share is

    l_i D_i  ^  m[a]  ^  m'[0] ^ e_peer D_i

Who learns what: which vectors are zero. A simulator that knows it writes 0 or uniform words for z, and the peer's share is z
without its own. A vector that is not zero passes with probability 2^-128. Threat model: `ot_extension`. Cost: 2 rounds; 1 bit a
bit and 16 bytes a vector from each party, besides a transfer each way a bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitslice import Words
from mpc_protocols.pair.bit_matrix import LANES, cells_of
from mpc_protocols.pair.random_ot import Demand, Transfers

_SHIFTS = np.arange(LANES, dtype=np.uint64).reshape(LANES, 1, 1)


def zero_demand(planes: int, words: int) -> Demand:
    """What `zero_cells` takes."""
    return Demand(rows=(planes * words, planes * words))


def zero_cells(transfers: Transfers, bits: Words, cells: int) -> NDArray[np.bool_]:
    """Open whether every plane of shape (planes, words) is 0 in a cell: bool of shape (cells,). 2 rounds."""
    link, size = transfers.link, bits.size
    transfers.need(zero_demand(*bits.shape))
    chosen, offered = transfers.chosen_rows(size), transfers.offered_rows(size)
    flips = link.exchange(bits ^ chosen.choices.reshape(bits.shape)) ^ bits
    selected = np.negative((flips[np.newaxis] >> _SHIFTS) & np.uint64(1))  # all ones where l_i ^ e_peer is 1
    shape = (LANES, *bits.shape, 2)
    parts = offered.difference.reshape(shape) & selected[..., np.newaxis]
    parts ^= chosen.got.reshape(shape)
    parts ^= offered.base.reshape(shape)
    part = np.ascontiguousarray(cells_of(np.bitwise_xor.reduce(parts, axis=1), cells))
    opened = part ^ link.exchange(part)
    zero: NDArray[np.bool_] = (opened == 0).all(axis=1)
    return zero
