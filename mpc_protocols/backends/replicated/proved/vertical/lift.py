"""Shares modulo 2^16 of counts as shares of the same counts modulo 2^32, by proved products only.

    s                     the count's bits: its three components, each known to two parties, added up      (`addition`)
    y_0 = F(k_0), y_1     random integers modulo 2^32, each known to two parties
    y_2 = s - y_0 - y_1   added up in bits, proved, and opened to P1 and P2 alone

y_2 is uniform to P1, who lacks y_0, and to P2, who lacks y_1. Nobody turns a bit into an element of a ring,
which it could scale. About 100 products and 12 bytes a count, of which there are few beside the rows they
count.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.sharing.copies import confirm, receive_confirmed
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements


def lift(gates: ProvedGates, counts: RingShare) -> RingShare:
    """uint16 shares of (n,) counts below 2^16 as uint32 shares. Proves all of `gates`; raises
    `ProtocolAborted`."""
    trio = gates.trio
    bits = add_up(gates, SummedNumbers.of(counts)).single()
    operation, size = trio.operation(), len(counts)
    known = {
        trio.me: trio.own_mask(size, np.uint32, operation),
        trio.right: trio.next_mask(size, np.uint32, operation),
    }
    nothing = np.zeros(size, np.uint32)
    masks = [
        Summand(-known[j] if trio.me == j else nothing, -known[j] if trio.right == j else nothing)
        for j in (0, 1)
    ]
    wide = Summand(bits.own.astype(np.uint32), bits.next.astype(np.uint32))
    rest = add_up(gates, SummedNumbers(np.uint32, nothing, None, (wide, *masks))).single()
    gates.verify()
    opened = _open_to_two(trio, rest)
    own, following = (known[j] if j != 2 else opened for j in (trio.me, trio.right))
    return RingShare(own, following)


def _open_to_two(trio: Trio, x: Summand) -> Elements:
    """XOR-shared integers, opened to P1 and P2; zeros at P0. 1 round. Raises `ProtocolAborted`.

    P1 lacks component 0, which P0 sends and P2 has, too; P2 lacks component 1, which P1 sends and P0 has,
    too.
    """
    me = trio.me
    if me == 0:
        trio.send(1, x.own)
        confirm(trio, 2, x.next)
    elif me == 1:
        trio.send(2, x.own)
    else:
        confirm(trio, 1, x.next)
    trio.turn()
    if me == 0:
        return np.zeros_like(x.own)
    sender, other = (0, 2) if me == 1 else (1, 0)
    missing = receive_confirmed(trio, sender, other, x.own.shape, np.uint32, "a masked value")
    found: Elements = x.own ^ x.next ^ missing
    return found
