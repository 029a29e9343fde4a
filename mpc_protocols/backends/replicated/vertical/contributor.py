"""An owner that does not compute: its part in every plan (`source`).

It follows the same schedule and plans as the computing parties, from the same public request, and sends

    its own histograms (union)      seed and masked counts                 (`engine.contribution`)
    one-hot columns, each row block      masked rows to two parties             (`matrices`)
    orders of the rows              places to each of the three, in return masked prefix sums (`group_by`)
    after each range of rows        its part of the permuted sums           (`matrices`, as a block of one column)

What it receives is masked by streams it does not know; it learns which tables are computed. Threat model:
`source`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.vertical import orders
from mpc_protocols.backends.replicated.vertical.group_by import (
    ShuffleStreams,
    component_shuffles,
    send_shuffle_seeds,
)
from mpc_protocols.backends.replicated.vertical.matrices import deal_block, ring_of, send_mask_seeds
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.backends.replicated.vertical.planner import schedule_of
from mpc_protocols.engine.arrays import receive_array
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import send_contribution
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.vertical.ordered_sums import OwnerShuffle
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.vertical.population import OutsideOwner
from mpc_protocols.vertical.tables import Group
from mpc_protocols.wire import Wire


class VerticalContributor(OutsideOwner[Plan]):
    """Answers the leader's requests for marginals of vertical data."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(wire, facts, data, schedule_of(data.partition, facts, wire.computing))

    def _send_histograms(self, cliques: Sequence[Clique]) -> None:
        send_contribution(self._wire, self._schedule.facts, self._counts, cliques, ())

    def _send_columns(self, plan: Plan) -> None:
        if self._wire.me in plan.contributing():
            self._follow(plan)

    def _follow(self, plan: Plan) -> None:
        me, dtype = self._wire.me, ring_of(plan.element)
        joints = plan.joints(me)
        streams = send_mask_seeds(self._wire)
        shuffle_streams = send_shuffle_seeds(self._wire) if me in plan.ordering() else None
        for row_range in plan.row_ranges():
            parts: dict[Group, Elements] = {
                group: np.zeros(plan.shape(group), dtype)
                for group in plan.groups(by_permutation=True)
                if group.lefts[0].owner == me
            }
            for start, stop in row_range:
                if joints:
                    deal_block(self._wire, streams, self._rows.one_hot(start, stop, joints, dtype))
                if shuffle_streams is not None:
                    for batch in orders.batches(plan, stop - start):
                        self._order(
                            plan,
                            [piece for piece in batch if piece.group in parts],
                            parts,
                            shuffle_streams,
                            start,
                            stop,
                        )
            if parts:
                deal_block(
                    self._wire, streams, np.concatenate([part.reshape(-1, 1) for part in parts.values()])
                )

    def _order(
        self,
        plan: Plan,
        batch: Sequence[orders.Piece],
        parts: dict[Group, Elements],
        shuffle_streams: ShuffleStreams,
        start: int,
        stop: int,
    ) -> None:
        """One batch of orders: its side of every shuffle, added to its parts."""
        dtype = ring_of(plan.element)
        under_way = []
        for piece in batch:
            cells = self._rows.cells(start, stop, piece.left.columns)
            readers = shuffle_streams.readers()
            for shuffle in component_shuffles(self._wire.me, plan.computing, piece.helper):
                own_shuffle = OwnerShuffle(cells, piece.layout, readers[shuffle.helper], dtype)
                self._wire.send(shuffle.worker, own_shuffle.places.view(np.uint8).data)
                under_way.append((piece, shuffle, own_shuffle))
        for piece, shuffle, own_shuffle in under_way:
            shape = (piece.layout.blocks, piece.layout.columns)
            prefixes = receive_array(self._wire, shuffle.worker, shape, dtype)
            parts[piece.group][:, piece.first : piece.first + piece.layout.columns] += own_shuffle.finish(
                prefixes
            )
