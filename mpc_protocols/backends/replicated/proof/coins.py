"""Coins that no single party knows before the two others have received all that comes before.

    ready    32 bytes from each party to each other: all that precedes has come. Nobody goes on before both others have said so
    reveal   c_i = F(k_i) is held by parties i-1 and i; each party gets the one it lacks from one holder and its hash from the
             other, as in any opening (`sharing.copies`)
    coin     the hash of c_0, c_1, c_2

A party that cheats lacks one of the three until an honest party reveals it, and honest parties reveal only
when BOTH have said "ready": whatever it sends them before is then fixed. The honest holder among two gives
the right value or the run ends, so honest parties that go on hold the same coin, uniform given all that came
before. 2 rounds, 128 bytes a party.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.sharing.copies import receive_missing
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.prg import KeyStream, Reader, binding, derive
from mpc_protocols.errors import ProtocolAborted

_SECRET_BYTES = 32


def toss(trio: Trio, public: bytes) -> bytes:
    """32 bytes that are uniform given all earlier messages. public: what all must agree on by now. Raises
    `ProtocolAborted`."""
    operation = trio.operation()
    differs = trio.differing(binding(b"ready", operation.to_bytes(8, "big"), public))
    if differs is not None:
        raise ProtocolAborted(
            f"Parties {trio.me} and {differs} do not agree on what precedes a common coin, so none is drawn; stop the run."
        )
    own = trio.own_mask(_SECRET_BYTES, np.uint8, operation)
    following = trio.next_mask(_SECRET_BYTES, np.uint8, operation)
    missing = receive_missing(trio, own, following)
    held = {trio.me: own, trio.right: following, trio.left: missing}
    return binding(b"coin", public, *(held[i].tobytes() for i in range(3)))


def stream(coin: bytes, purpose: bytes) -> Reader:
    """Public random bytes of a coin for one purpose."""
    return KeyStream(derive(coin, purpose)).reader(0)
