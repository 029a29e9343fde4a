"""Sums of |x| over segments of additively shared cells: sign, then one correlated transfer in each direction
per cell.

With the sign m of x (`sign`),  |x| = x - 2 m x  (`conversion.masked_numbers`), then local sums per segment. A public c is
subtracted from one party's share before; cells whose c is 0 need none of this, for |x| = x.

Nothing is opened. Public bounds, asserted by the caller: |x| < 2^(k-1) in every cell, sum |x| < 2^K in every
segment. Threat model: `ot_extension`. Cost per cell and party, 18 planes in a ring of 32 bits: 39 bytes of
transfers and 14 besides; 5 rounds for the signs (ripple), one for the products, one for the transfers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.conversion import masked_numbers, masked_numbers_demand
from mpc_protocols.backends.pair.circuits.sign import carry_demand, chunks, signs
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import Elements, words_for


def l1_demand(cells: int, planes: int, adder: Adder) -> Demand:
    """Transfers for one chunk."""
    return carry_demand(planes - 1, words_for(cells), adder) + masked_numbers_demand(cells)


def l1_sums(
    transfers: Transfers, x: Elements, lengths: NDArray[np.int64], planes: int, adder: Adder
) -> Elements:
    """Shares of the sums of |x| over consecutive segments of public lengths (0 allowed): (cells,) to
    (segments,)."""
    if int(lengths.sum()) != len(x):
        raise ValueError(f"Segments of {int(lengths.sum())} cells do not cover {len(x)}.")
    terms = np.empty_like(x)
    start = 0
    for cells in chunks(len(x)):
        piece = slice(start, start + cells)
        terms[piece] = _absolute_values(transfers, x[piece], planes, adder)
        start += cells
    return sum_segments(terms, lengths)


def _absolute_values(transfers: Transfers, x: Elements, planes: int, adder: Adder) -> Elements:
    """Shares of |x| = x - 2 m x, cell by cell."""
    transfers.reserve(l1_demand(len(x), planes, adder))
    negative = signs(transfers, x, planes, adder)
    twice = masked_numbers(transfers, negative, x)
    twice <<= x.dtype.type(1)
    return x - twice
