"""Shares modulo 2^16 of counts as shares of the same counts modulo 2^32, by proved products only: the three
components, each known to two parties, are added up in bits (`addition`), and the bits become ring shares
(`conversion`).

About 100 products and 12 bytes a count, of which there are few beside the rows they count.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.conversion import in_ring
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import SummedNumbers
from mpc_protocols.backends.replicated.sharing.ring import RingShare


def lift(gates: ProvedGates, counts: RingShare) -> RingShare:
    """uint16 shares of (n,) counts below 2^16 as uint32 shares. Proves all of `gates`; raises
    `ProtocolAborted`."""
    bits = add_up(gates, SummedNumbers.of(counts)).single()
    wide = bits.map(lambda part: part.astype(np.uint32))
    return in_ring(gates, SummedNumbers(np.uint32, np.zeros(len(counts), np.uint32), None, (wide,)))
