"""A stream of a wire with a session id of its own: for one of several protocols that a program runs on one
wire.

Masks are bound to a wire's session (`mpc_protocols/engine/prg.py`), so two protocols in one session would use
the same masks twice. Keys are the whole wire's; what is derived from them is not, since every derivation
takes the session id in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mpc_protocols.wire import Traffic, Wire


class OwnSession:
    """Implements `wire.Wire` over a fork. name: the same at all parties, and used once on this wire
    (`ValueError`)."""

    def __init__(self, wire: Wire, name: str) -> None:
        own = hashlib.sha256(b"cosynth own session" + wire.session_id + name.encode()).digest()
        self._over(wire.fork(name), own)

    def _over(self, wire: Wire, session_id: bytes) -> None:
        self._wire, self.session_id = wire, session_id
        self.me, self.computing, self.contributors = wire.me, wire.computing, wire.contributors

    def key(self, peer: int) -> bytes:
        """See `Wire.key`."""
        return self._wire.key(peer)

    def set_key(self, members: Sequence[int]) -> bytes:
        """See `Wire.set_key`."""
        return self._wire.set_key(members)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        """See `Wire.send`."""
        self._wire.send(peer, payload)

    def receive(self, peer: int, size: int) -> memoryview:
        """See `Wire.receive`."""
        return self._wire.receive(peer, size)

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        """See `Wire.receive_up_to`."""
        return self._wire.receive_up_to(peer, limit)

    def fork(self, name: str) -> OwnSession:
        """See `Wire.fork`: of this session, not of the wire's, in which another protocol's fork of this name
        may draw masks."""
        fork = OwnSession.__new__(OwnSession)
        fork._over(self._wire.fork(name), self.session_id)
        return fork

    def count_proof(self) -> None:
        """See `Wire.count_proof`."""
        self._wire.count_proof()

    def traffic(self) -> Traffic:
        """See `Wire.traffic`."""
        return self._wire.traffic()
