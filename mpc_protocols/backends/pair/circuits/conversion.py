"""From bits to integers, integers times bits, and from one ring to a wider one, between two parties.

A shared bit is, as an integer, x_0 + x_1 - 2 x_0 x_1; the product of what one party knows with what the other
knows is one correlated transfer (`correlated`). Of several bits the first half is chosen by party 0, the
other by party 1, so that both send the same.

Nothing is opened. Threat model: `ot_extension`. Cost: 1 round; K + 1 bits a bit from both parties together,
besides the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.pair.circuits.sign import carry, carry_demand, chunks
from mpc_protocols.backends.pair.transfers.correlated import products, products_demand
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_bits, to_planes, words_for


def weighted_sum_demand(planes: int, cells: int) -> Demand:
    """Transfers for `weighted_sum`."""
    return products_demand((planes - planes // 2, planes // 2), cells)


def weighted_sum(
    transfers: Transfers, bits: Words, weights: Sequence[int], cells: int, dtype: UInt
) -> Elements:
    """Shares of sum_j weights[j] * bits[j] for every cell, modulo 2^K: planes (len(weights), words) to
    (cells,). 1 round.

    Weights are public integers, also negative ones.
    """
    if len(bits) != len(weights):
        raise ValueError(f"{len(weights)} weights do not fit {len(bits)} planes of bits.")
    modulus = 1 << 8 * np.dtype(dtype).itemsize
    split = len(bits) - len(bits) // 2
    chosen, offered = (
        (slice(0, split), slice(split, None))
        if transfers.link.me == 0
        else (slice(split, None), slice(0, split))
    )
    own_bits = to_bits(bits, cells, dtype)
    factors = np.array([weight % modulus for weight in weights], dtype)[:, np.newaxis]
    own_bits *= factors
    twice = own_bits[offered] * dtype(modulus - 2)
    chosen_part, offered_part = products(transfers, contiguous(bits[chosen]), twice, cells)
    total: Elements = own_bits.sum(axis=0, dtype=dtype)
    total += chosen_part.sum(axis=0, dtype=dtype)
    total += offered_part.sum(axis=0, dtype=dtype)
    return total


def masked_numbers_demand(cells: int) -> Demand:
    """Transfers for `masked_numbers`."""
    return products_demand((1, 1), cells)


def masked_numbers(transfers: Transfers, bits: Words, x: Elements) -> Elements:
    """Shares of x where a shared bit is 1, else of 0: bits (words,), x (cells,). 1 round.

    With m = m_0 ^ m_1:  m x = m_0 x_0 + m_1 x_1 + m_1 [(1 - 2 m_0) x_0] + m_0 [(1 - 2 m_1) x_1], where each bracket is known to
    one party and its factor to the other.
    """
    dtype = x.dtype.type
    flags = to_bits(bits, len(x), dtype)
    own = flags * x
    bracket = x - (own << dtype(1))
    chosen_part, offered_part = products(transfers, bits[np.newaxis], bracket[np.newaxis], len(x))
    own += chosen_part[0]
    own += offered_part[0]
    return own


def lift_demand(bits: int, cells: int, adder: Adder) -> Demand:
    """Transfers for one chunk of `lift`, of integers of so many bits."""
    return carry_demand(bits, words_for(cells), adder) + weighted_sum_demand(1, cells)


def lift(transfers: Transfers, x: Elements, dtype: UInt = np.uint64, adder: Adder = "tree") -> Elements:
    """A share modulo 2^K of integers in [0, 2^K) as a share of the same integers in a wider ring, that of
    `dtype`.

    x = x_0 + x_1 - 2^K o, o the carry out of K planes. Rounds: for each chunk of cells those of `sign.carry`,
    and 1.
    """
    bits = 8 * x.dtype.itemsize
    lifted, start = x.astype(dtype), 0
    for cells in chunks(len(x)):
        piece = slice(start, start + cells)
        transfers.reserve(lift_demand(bits, cells, adder))
        overflow = carry(transfers, x[piece], to_planes(x[piece], bits), adder)
        lifted[piece] += weighted_sum(transfers, overflow[np.newaxis], (-(1 << bits),), cells, dtype)
        start += cells
    return lifted
