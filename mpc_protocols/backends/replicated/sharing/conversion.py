"""From bits to ring elements, and from one ring to a wider one (`docs/design/engine.md` 2.4).

A shared bit x = u ^ m with u = x_0 ^ x_1 known to P0 and m = x_2 known to P1 and P2 is, as an integer, u (1 -
2m) + m. P0 inputs u as ring elements (u = u' + u'': u' = F(k_0) known to P0 and P2, u'' sent to P1); the rest
is local:

    P1: u'' (1 - 2m) + m        P2: u' (1 - 2m)        P0: 0        then one zero-masked reshare

so weighted sums of many bits cost K bits per bit and ONE reshared element per sum, 2 rounds: of the bits of a
sum the parties take the part of P0 in turn, each with its own streams, so that all send as much.

Threat model, masking and assumption: `trio`. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare, reshare, share_from
from mpc_protocols.backends.replicated.sharing.sign import carry, operand, share_operands
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, to_bits


def weighted_sum(trio: Trio, bits: BitShare, weights: Sequence[int], cells: int, dtype: UInt) -> RingShare:
    """sum_j weights[j] * bits[j] for every cell, modulo 2^K: planes of shape (len(weights), words) to a share
    of (cells,).

    Weights are public integers, also negative ones. 2 rounds: K bits a cell for each bit j, from party j mod
    3 to that on its right, then one element a cell from each party.
    """
    if len(bits) != len(weights):
        raise ValueError(f"{len(weights)} weights do not fit {len(bits)} planes of bits.")
    modulus = 1 << 8 * np.dtype(dtype).itemsize
    factors = [dtype(weight % modulus) for weight in weights]
    operation = trio.operation()
    turns = [range(party, len(weights), 3) for party in range(3)]
    parts: Elements = np.zeros(cells, dtype)
    if turns[trio.me]:
        columns = to_bits((bits.own ^ bits.next)[trio.me :: 3], cells, dtype)
        trio.send(trio.right, columns - trio.own_mask(columns.shape, dtype, operation))
    trio.turn()
    for party, held in ((trio.left, bits.next), (trio.right, bits.own)):
        shape, is_left = (len(turns[party]), cells), party == trio.left
        columns = trio.receive(party, shape, dtype) if is_left else trio.next_mask(shape, dtype, operation)
        for column, j in zip(columns, turns[party], strict=True):
            known = to_bits(held[j], cells, dtype)
            term = (dtype(1) - (known << dtype(1))) * column
            if is_left:
                term += known
            term *= factors[j]
            parts += term
    return reshare(trio, parts)


def lift(trio: Trio, x: RingShare, dtype: UInt = np.uint64) -> RingShare:
    """A share modulo 2^K of integers in [0, 2^K) as a share of the same integers in a wider ring, that of
    `dtype`.

    x = a + b - 2^K o with a known to P0, b to P1 and P2, o the carry out of K planes: for a few sums, not for
    cells. 9 rounds from 2^32 to 2^64, 8 from 2^16: planes of a (and a itself), lg K + 1 for the carry, 2 for
    its injection. Two elements of the wider ring and K bits a cell from P0 besides.
    """
    bits = 8 * x.own.dtype.itemsize
    known = operand(trio, x)
    overflow = carry(trio, share_operands(trio, known, bits), bits, "tree")
    wide = known.astype(dtype)
    total = share_from(trio, 0, wide if trio.me == 0 else None, known.shape, dtype)
    if trio.me == 1:
        total = RingShare(total.own, total.next + wide)
    elif trio.me == 2:
        total = RingShare(total.own + wide, total.next)
    return total + weighted_sum(trio, overflow[np.newaxis], (-(1 << bits),), len(x), dtype)
