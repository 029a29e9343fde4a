"""An owner that does not compute, where products are proved: its part in every plan (`source`).

It follows the same schedule and plans as the computing parties, from the same public request, says to all
three what it was asked for, and deals its one-hot columns block by block, each component to both parties that
hold it. It receives nothing but requests. Threat model: `source`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.proved.vertical.columns import KeptColumns
from mpc_protocols.backends.replicated.proved.vertical.planner import schedule_of
from mpc_protocols.backends.replicated.proved.vertical.source import agreed, request
from mpc_protocols.backends.replicated.vertical.matrices import deal_block, ring_of, send_mask_seeds
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.vertical.schedule import contributed_rows
from mpc_protocols.wire import Wire


class ProvedVerticalContributor:
    """Answers the leader's requests for marginals of vertical data."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        rows = contributed_rows(data, facts, wire.me)
        self._wire, self._rows = wire, rows
        self._schedule = schedule_of(data.partition, facts, wire.computing)
        self._asked = agreed(data.partition)
        self._columns = KeptColumns()

    def send(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        """Its part in the input of these cliques. Blocks while the computing parties are behind.

        Raises `ProtocolAborted` for what the leading party refuses before it asks.
        """
        wire = self._wire
        self._asked = request(wire, self._asked, cliques, levels)
        self._rows.declare(self._schedule.declare(levels))
        try:
            plan = self._schedule.next(cliques).plan
        except StudyInvalid as error:
            raise ProtocolAborted(
                f"The leading party asked for what the study does not allow ({error.sentence.rstrip('.')}); stop the run."
            ) from None
        if plan is None:
            return
        own = self._columns.next(plan).get(wire.me)
        if own is None:
            return
        for party in range(wire.computing):
            wire.send(party, self._asked)
        streams, dtype = send_mask_seeds(wire), ring_of(plan.element)
        if not own.fresh:
            return
        for row_range in plan.row_ranges():
            for start, stop in row_range:
                deal_block(wire, streams, self._rows.one_hot(start, stop, own.fresh, dtype))
