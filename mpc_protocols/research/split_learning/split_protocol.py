"""Descriptor of split learning (`exchange`, `schedule`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.vertical.owners import SplitProtocol

if TYPE_CHECKING:
    from mpc_protocols.research.split_learning import exchange, schedule
    from mpc_protocols.wire import Wire
else:
    exchange = Later("mpc_protocols.research.split_learning.exchange")
    schedule = Later("mpc_protocols.research.split_learning.schedule")


class SplitLearning(SplitProtocol):
    """Embeddings one way, gradients the other way."""

    name = "split learning"

    def link(self, wire: Wire, peer: int, name: str, cut: int) -> exchange.Exchange:
        return exchange.Exchange(wire, peer, name, cut)

    def batches(self, rows: int, session: bytes, seed: bytes, batch: int, held_out: int) -> schedule.Schedule:
        return schedule.Schedule(rows, session, seed, batch, held_out)


SPLIT_PROTOCOL = SplitLearning()
