"""The carries between the slots of masked sums, as shares modulo 2^32 (`docs/design/paillier.md` 2).

Slot j of the decrypted sum is y_j = M_j + r_j + (carry into it) modulo 2^32, with M_j < 2^31. The carry out
of it is the product

    (uppermost bit of r_j) (1 - uppermost bit of y_j)

of a bit of the aggregator, which drew r, and of a bit of the key holder, which decrypted y: one correlated
transfer.

Who learns what: nothing. Threat model and assumptions: `pair.transfers.correlated`. Cost: 3.25 bytes a cell
from the aggregator, 4 from the key holder; two rounds for each chunk of cells (`sign.chunks`).
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.paillier.packing import SLOT_BITS
from mpc_protocols.backends.pair.circuits.sign import chunks
from mpc_protocols.backends.pair.transfers.correlated import products
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import Elements, from_bits, words_for


def carries_of_masks(transfers: Transfers, masks: Elements) -> Elements:
    """At the aggregator: its share of the carry out of every slot. masks: r, uint32, (cells,)."""
    share, start = np.empty_like(masks), 0
    for cells in chunks(len(masks)):
        piece = slice(start, start + cells)
        upper = from_bits(masks[piece] >> np.uint32(SLOT_BITS - 1))
        chosen, _ = products(transfers, upper[np.newaxis], np.empty((0, cells), np.uint32), cells)
        share[piece] = chosen[0]
        start += cells
    return share


def carries_of_sums(transfers: Transfers, sums: Elements) -> Elements:
    """At the key holder: its share of the carry out of every slot. sums: y, uint32, (cells,)."""
    share, start = np.empty_like(sums), 0
    for cells in chunks(len(sums)):
        piece = slice(start, start + cells)
        lower = ~sums[piece] >> np.uint32(SLOT_BITS - 1)
        _, offered = products(transfers, np.empty((0, words_for(cells)), np.uint64), lower[np.newaxis], cells)
        share[piece] = offered[0]
        start += cells
    return share
