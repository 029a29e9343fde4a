"""One party's end of a two-party computation: messages to the peer, and the turns of protocols that run side
by side.

Protocols of this package are symmetric wherever they can be: both parties send, then both receive, which is
one round (`Link.exchange`). Sizes are functions of public numbers; an array of another size aborts the run
(`wire.receive`).

Nothing is secret here and nothing is masked: masks come from oblivious transfers (`random_ot`), of which
every one is used once. A computation that runs beside another has a link of its own (`Link.fork`), over a
fork of the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.link import PartLink
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.wire import Wire


class Link(PartLink):
    """Messages of party `me` in 0, 1 to the other, its `peer`."""

    engine = "The two-party engine"

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        super().__init__(wire, stream, latency_bytes)
        self.peer = 1 - wire.me
        self.meanwhile: Callable[[], None] = alone
        """What this party makes for later beside every exchange (`random_ot`)."""

    def give_way(self) -> None:
        """Between the sends and the receives of a step: what is made meanwhile leaves before anything is waited for, then
        comes the turn of what runs beside."""
        self.meanwhile()
        self.turn()

    def exchange(self, part: NDArray[Any]) -> NDArray[Any]:
        """See `PartLink`."""
        self.send(self.peer, part)
        self.give_way()
        return self.receive(self.peer, part.shape, part.dtype.type)

    def _check(self, wire: Wire) -> None:
        if wire.computing != 2 or wire.me not in (0, 1):
            raise StudyInvalid(
                f"The two-party engine needs exactly two computing parties, the study names {wire.computing}."
            )

    def context(self, *parts: bytes) -> bytes:
        """32 public bytes, alike at both parties, that no other stream, run or list of parts shares."""
        return binding(b"pair", self.wire.session_id, self.stream.encode(), *parts)
