"""That every entry which an owner inputs is 0 or 1, proved on its shares modulo 2^16
(`docs/design/malicious.md` 3.3).

An owner p that computes inputs A = x + y with x = F(k_p), which p-1 derives, and y sent to p+1. The bits of a
sum are x_j ^ y_j ^ c_j; they are 0 from the second one on exactly if the carries are c_j = x_j ^ y_j there,
that is if

    x_0 y_0 = x_1 ^ y_1                 x_j y_j = (x_{j+1} ^ y_{j+1}) ^ (x_j ^ y_j)             j = 1 .. 14

One factor of each is a bit that p-1 holds, the other one that p+1 holds, the right sides are shared between
them, and p knows all of it: statements of `proof.bit_products.products` with p as the prover. No message but
the proof's: 15 statements an entry.

Nobody who takes part knows a contributor's entries, so the three parties add their components up in bits, by
proved full adders; what stands above the lowest bit is 0 if the contributor is honest, and compared as other
linear conditions are (`conditions`). 30 products an entry.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import SummedNumbers
from mpc_protocols.backends.replicated.proved.vertical.planner import PLANES
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.vertical.matrices import Matrix
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, to_planes


def prove_entries(gates: ProvedGates, owner: int, entries: Matrix) -> None:
    """Note that entries of an owner that computes are 0 or 1; proved with the products of `gates`. No
    message."""
    trio, size = gates.trio, entries.shape[0] * entries.shape[1]
    if not size:
        return
    if trio.me == owner:
        first, second = (_factors(part) for part in (entries.own, entries.next))
        gates.note_of(owner, first, second, np.zeros(0, np.uint64))
    elif trio.right == owner:
        factors = _planes(entries.next)
        gates.note_of(owner, _flat(factors[:PLANES]), None, _carries(factors))
    else:
        factors = _planes(entries.own)
        gates.note_of(owner, None, _flat(factors[:PLANES]), _carries(factors))


def upper_bits(gates: ProvedGates, entries: RingShare) -> tuple[Elements, Elements]:
    """This party's two components of what stands above the lowest bit of a contributor's entries: 0 if each
    is 0 or 1.

    2 rounds or more, as of `addition.add_up`. What comes back is right once `gates` are verified.
    """
    total = add_up(gates, SummedNumbers.of(entries.reshape(-1))).single()
    one = np.uint16(1)
    return total.own >> one, total.next >> one


def _planes(part: Elements | None) -> Words:
    assert part is not None
    return to_planes(np.ascontiguousarray(part).reshape(-1), PLANES + 1)


def _factors(part: Elements | None) -> Words:
    return _flat(_planes(part)[:PLANES])


def _carries(planes: Words) -> Words:
    """One verifier's part of the right sides."""
    carries = planes[1:].copy()
    carries[1:] ^= planes[1:-1]
    return carries.reshape(-1)


def _flat(planes: Words) -> Words:
    return np.ascontiguousarray(planes).reshape(-1)
