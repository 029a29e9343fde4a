"""Sums of shared bits as ring shares, by proved products only.

    y_0 = F(k_0), y_1     random integers modulo the ring, each known to two parties
    y_2 = s - y_0 - y_1   added up in bits, proved, and opened to P1 and P2 alone

y_2 is uniform to P1, who lacks y_0, and to P2, who lacks y_1. Nobody turns a bit into an element of a ring, which
it could scale. So numbers that many openings are to take, such as noise that is made ahead, are proved once: whoever
adds them to ring shares has nothing more to prove.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.sharing.ring import RingShare


def in_ring(gates: ProvedGates, numbers: SummedNumbers) -> RingShare:
    """The same numbers, shape (n,), as ring shares. Proves all of `gates`; raises `ProtocolAborted`.

    Rounds: those of the sum, of the proof, and 1.
    """
    known = gates.known_integers(len(numbers), numbers.ring)
    me, right = gates.trio.me, gates.trio.right
    nothing = np.zeros_like(numbers.public)
    masks = tuple(
        Summand(-known[j] if me == j else nothing, -known[j] if right == j else nothing) for j in (0, 1)
    )
    rest = add_up(gates, numbers + SummedNumbers(numbers.ring, nothing, None, masks)).single()
    gates.verify()
    opened = gates.opened_to_two(rest)
    own, following = (known[j] if j != 2 else opened for j in (me, right))
    return RingShare(own, following)
