"""The marginals of a common table whose columns two of the three computing parties own (`partition`), in
additive shares.

    intersection   the table of the clique's joints at either owner: an owner's row of zeros where it lacks the record counts
                   nothing, and a joint of no columns is the membership
    union          the same, and the rows that one owner alone holds: its own histogram less the table's sums over the other's
                   joint, added where the other one's columns have their missing code

all but the tables (`tables`) local on shares. Who learns what: nothing; u and which cliques are shared are
public.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.vertical.plan import TablesPlan, check_owners, make_plan, parts_of
from mpc_protocols.backends.additive.vertical.tables import TableSharing
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.vertical.partition import Partition, VerticalData
from mpc_protocols.vertical.schedule import own_rows
from mpc_protocols.vertical.union import missing_cell


class JoinedMarginals(AdditiveMarginals):
    """Marginals of the common table's rows (vertical); zeros at party 2, which holds no shares."""

    def __init__(self, gates: AdditiveGates, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid` (other
        owners)."""
        check_owners(data.partition)
        wire = gates.link.wire
        super().__init__(wire.session_id, binding(b"vertical", data.partition.to_bytes()))
        self._records = own_rows(data, facts, wire.me)
        self._sharing = TableSharing(gates, self._records)
        self._partition, self._facts = data.partition, facts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        if self._records is not None:
            self._records.declare(levels)
        partition, sizes = self._partition.with_levels(levels), self._facts.with_levels(levels).sizes
        plan = make_plan(partition, sizes, cliques)
        cells = self._sharing.share(plan)
        return {clique: marginal(partition, plan, clique, cells) for clique in cliques}


def marginal(partition: Partition, plan: TablesPlan, clique: Clique, cells: Elements) -> Elements:
    """The share of a clique's marginal from those of all cells of its plan. Local."""
    parts = parts_of(partition, clique)
    shape = plan.width(parts[0]), plan.width(parts[1])
    table = plan.places.get(parts)
    if table is not None:
        counts = cells[table].reshape(shape).copy()
    if partition.population == "union":
        first, second = (cells[plan.places[side, part]] for side, part in enumerate(parts))
        if table is None:  # one owner's clique
            both = cells[plan.places[(), ()]].reshape(1, 1)
            alone, other, side = (first, second, 0) if parts[0] else (second, first, 1)
            counts = alone.copy().reshape(shape)
            place = missing_cell(partition, plan.sizes, parts[side])
            counts.reshape(-1)[place : place + 1] += other - both[0]
        else:
            both = counts.copy()
            counts[:, missing_cell(partition, plan.sizes, parts[1])] += first - both.sum(
                axis=1, dtype=np.uint32
            )
            counts[missing_cell(partition, plan.sizes, parts[0])] += second - both.sum(
                axis=0, dtype=np.uint32
            )
    columns = parts[0] + parts[1]
    axes = [columns.index(column) for column in clique]
    turned = counts.reshape([plan.sizes[name] for name in columns]).transpose(axes)
    return contiguous(turned).reshape(-1)
