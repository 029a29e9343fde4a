"""One party's end of a two-party computation: messages to the peer, and the turns of protocols that run side by side.

Protocols of this package are symmetric wherever they can be: both parties send, then both receive, which is one round
(`Link.exchange`). Sizes are functions of public numbers; an array of another size aborts the run (`wire.receive`).

Nothing is secret here and nothing is masked: masks come from oblivious transfers (`random_ot`), of which every one is used
once. A computation that runs beside another has a link of its own (`Link.fork`), over a fork of the wire.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.wire import Wire


class Link:
    """Messages of party `me` in 0, 1 to the other. `latency_bytes`: what a round is worth here (see LATENCY_BYTES)."""

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        """Raises `StudyInvalid` unless exactly two parties compute and this is one of them."""
        if wire.computing != 2 or wire.me not in (0, 1):
            raise StudyInvalid(
                f"The two-party engine needs exactly two computing parties, the study names {wire.computing}."
            )
        if sys.byteorder != "little":
            raise StudyInvalid(
                "The two-party engine runs on little-endian machines only; move this party to another one."
            )
        self.wire = wire
        self.me = wire.me
        self.peer = 1 - wire.me
        self.stream = stream
        self.latency_bytes = latency_bytes
        self.turn: Callable[[], None] = alone
        """Called by both parties between the sends and the receives of every step: what runs beside goes on."""

    def fork(self, name: str) -> Link:
        """A link over a fork of the wire (which accepts each name once)."""
        return Link(self.wire.fork(name), f"{self.stream}/{name}", self.latency_bytes)

    def context(self, *parts: bytes) -> bytes:
        """32 public bytes, alike at both parties, that no other stream, run or list of parts shares."""
        return binding(b"pair", self.wire.session_id, self.stream.encode(), *parts)

    def send(self, array: NDArray[Any]) -> None:
        """Send an array, which must not be modified afterwards; empty arrays are not sent."""
        send_array(self.wire, self.peer, array)

    def receive(self, shape: int | tuple[int, ...], dtype: UInt) -> NDArray[Any]:
        """The peer's next array, of exactly this shape and dtype; read-only. Raises `ProtocolAborted`, `PeerLost`."""
        return receive_array(self.wire, self.peer, shape, dtype)

    def exchange(self, array: NDArray[Any]) -> NDArray[Any]:
        """Send an array and return the peer's of the same shape and dtype. 1 round."""
        self.send(array)
        self.turn()
        return self.receive(array.shape, array.dtype.type)
