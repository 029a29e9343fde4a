"""One computing party's end of a protocol on shares: messages of arrays to the others, and turns of what runs
beside.

Every engine has such a link, and adds what its masks come from. A computation that runs beside another has a
link of its own (`Link.fork`), over a fork of the wire. Sizes are functions of public numbers; an array of
another size aborts the run (`wire.receive`).

Nothing is secret here and nothing is masked: who learns what is the protocol's affair.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.wire import Wire


class Link:
    """Messages of party `me`. `latency_bytes`: what a round is worth here (see LATENCY_BYTES). `stream`:
    names the fork."""

    engine: ClassVar[str]
    """What runs on it, the subject of a sentence."""

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        """Raises `StudyInvalid` for a number of parties that the engine does not serve."""
        self._check(wire)
        if sys.byteorder != "little":
            raise StudyInvalid(
                f"{self.engine} runs on little-endian machines only; move this party to another one."
            )
        self.wire = wire
        self.me = wire.me
        self.stream = stream
        self.latency_bytes = latency_bytes
        self.peers: Sequence[int] = [peer for peer in range(wire.computing) if peer != wire.me]
        """All others that compute."""
        self.turn: Callable[[], None] = alone
        """Called by all parties between the sends and the receives of every step: what runs beside goes on
        (`interleave`)."""

    def _check(self, wire: Wire) -> None:
        """Raise `StudyInvalid` unless so many parties compute as the engine serves, and this is one of them."""

    def fork(self, name: str) -> Self:
        """A link over a fork of the wire (which accepts each name once)."""
        return type(self)(self.wire.fork(name), f"{self.stream}/{name}", self.latency_bytes)

    def send(self, peer: int, array: NDArray[Any]) -> None:
        """Send an array, which must not be modified afterwards; empty arrays are not sent."""
        send_array(self.wire, peer, array)

    def receive(self, peer: int, shape: int | tuple[int, ...], dtype: UInt) -> NDArray[Any]:
        """The peer's next array, of exactly this shape and dtype; read-only. Raises `ProtocolAborted`,
        `PeerLost`."""
        return receive_array(self.wire, peer, shape, dtype)


class PartLink(Link):
    """A link of an engine whose secrets are the sum, or the XOR, of one part at each of some parties, the
    holders.

    What other computing parties keep in place of parts are zeros.
    """

    holders: ClassVar[Sequence[int]] = (0, 1)

    @property
    def holds(self) -> bool:
        """Whether this party holds parts."""
        return self.me in self.holders

    @property
    def adds_public(self) -> bool:
        """Whether public terms go into this party's parts: into those of one holder."""
        return self.me == self.holders[0]

    def exchange(self, part: NDArray[Any]) -> NDArray[Any]:
        """Of two holders: send an array and return the other's of the same shape and dtype. 1 round."""
        peer = 1 - self.me
        self.send(peer, part)
        self.turn()
        return self.receive(peer, part.shape, part.dtype.type)

    def combine(self, part: NDArray[Any], by: np.ufunc) -> NDArray[Any]:
        """Open what the holders' parts come to, to all holders. by: how, addition or XOR. 1 round."""
        opened: NDArray[Any] = by(part, self.exchange(part))
        return opened

    def tell(self, opened: NDArray[Any]) -> NDArray[Any]:
        """What the holders have just opened, to all that compute."""
        return opened


class LinkedGates(ABC):
    """Gates whose messages go over a link (`engine.interface.Turns`)."""

    @property
    @abstractmethod
    def link(self) -> Link:
        """The messages to the others."""

    @property
    def turn(self) -> Callable[[], None]:
        """See `engine.interface.Turns`."""
        return self.link.turn

    @turn.setter
    def turn(self, turn: Callable[[], None]) -> None:
        self.link.turn = turn
