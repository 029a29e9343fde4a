"""A public seed to which every computing party contributes, drawn when all have received what contributors
sent.

Semi-honest: each sends 32 random bytes to all others; the seed is a hash of all. A party that deviates could
send different bytes to two others, who would then go on with different seeds. A backend that must not allow
that takes its seed from elsewhere (`engine.interface.Engine.seed`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from mpc_protocols.engine.agreement import Confirm
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.wire import Wire

COIN_BYTES: Final = 32
"""Of each computing party, of which the seed is a hash."""


def exchanged_seed(wire: Wire, announce: Callable[[bytes], Confirm], held: bytes) -> bytes:
    """32 bytes, alike at all computing parties that follow the protocol. announce, held: as of `Engine`. 2
    rounds.

    Raises `ProtocolAborted` if another party has kept something else.
    """
    if (other := announce(binding(b"contributions received", wire.session_id, held))()) is not None:
        raise ProtocolAborted(
            f"Party {other} has kept contributors' numbers of rows of another attempt than this party, so the run cannot be "
            "resumed; start anew with --replace at all parties."
        )
    own = secrets.token_bytes(COIN_BYTES)
    others = [peer for peer in range(wire.computing) if peer != wire.me]
    for peer in others:
        wire.send(peer, own)
    seeds = {wire.me: own} | {peer: bytes(wire.receive(peer, COIN_BYTES)) for peer in others}
    return binding(wire.session_id, *(seeds[party] for party in sorted(seeds)))
