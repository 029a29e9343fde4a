"""Descriptor of split learning (`exchange`, `schedule`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.vertical.owners import SplitProtocol

if TYPE_CHECKING:
    from mpc_protocols.research.split_learning.exchange import Exchange
    from mpc_protocols.research.split_learning.schedule import Schedule
    from mpc_protocols.wire import Wire


class SplitLearning(SplitProtocol):
    """Embeddings one way, gradients the other way."""

    name = "split learning"

    def link(self, wire: Wire, peer: int, name: str, cut: int) -> Exchange:
        from mpc_protocols.research.split_learning.exchange import Exchange

        return Exchange(wire, peer, name, cut)

    def batches(self, rows: int, session: bytes, seed: bytes, batch: int, held_out: int) -> Schedule:
        from mpc_protocols.research.split_learning.schedule import Schedule

        return Schedule(rows, session, seed, batch, held_out)


SPLIT_PROTOCOL = SplitLearning()
