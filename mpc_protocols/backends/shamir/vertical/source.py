"""The marginals of vertically split data as the holders' parts, in place of everybody's counts
(`docs/design/shamir.md` 6).

Owners deal their one-hot columns as Shamir shares modulo p (`dealer`); a table over two owners is a matrix
product on shares, whose cells are reduced and converted ONCE for a range of rows (`execution`, `counts`). The
union's one-owner tables are the owners' own histograms, input as horizontal counts are (`held_marginals`).

Threat model: semi-honest, at most t of the m computing parties together, with any contributors and
recipients. Assumption: AES. Each party learns which tables are computed, and u, the rows of the common table;
nobody learns which rows another owner holds, how many are in common, or a count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates, split_of
from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.vertical.counts import held_counts
from mpc_protocols.backends.shamir.vertical.dealer import (
    Dealer,
    Shares,
    evaluators,
    zero_shares,
    zero_streams,
)
from mpc_protocols.backends.shamir.vertical.execution import PlanExecution
from mpc_protocols.backends.shamir.vertical.plan import schedule_of
from mpc_protocols.backends.shamir.vertical.prime import Residues, combination
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.held_marginals import HeldMarginals
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.vertical.block_plan import BlockPlan
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.vertical.population import AdditivePopulation, OutsideOwner
from mpc_protocols.wire import Wire


class VerticalMarginals(AdditivePopulation):
    """One computing party's parts of the population's marginals; zeros at a party that is no holder."""

    def __init__(self, gates: ShamirGates, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        wire = gates.mesh.wire
        super().__init__(wire, facts, data, schedule_of(data.partition, facts, wire.computing))
        self._gates = gates
        self._dealer, self._shares = Dealer.computing(wire), Shares(wire)
        self._evaluates = wire.me in evaluators(threshold_of(wire.computing))
        self._zeros = zero_streams(wire) if self._evaluates else {}
        self._ranges = 0

    def _counted(self, counts: LocalCounts | None) -> HeldMarginals:
        return HeldMarginals(self._wire, self._schedule.facts, counts, split_of(self._wire))

    def _cells(self, plan: BlockPlan) -> Elements:
        for owner in plan.inputs():
            if owner >= self._wire.computing:
                self._shares.hear(owner)
        run = PlanExecution(self._wire, plan, self._rows, self._dealer, self._shares)
        cells: Elements = np.zeros(plan.counts, np.uint32)
        for row_range in plan.row_ranges():
            parts = run.parts(row_range)
            cells += held_counts(self._gates, self._masked(parts) if self._evaluates else None, plan.counts)
        return cells

    def _masked(self, parts: Residues) -> Residues:
        zeros = zero_shares(self._wire, self._zeros, self._ranges, len(parts))
        self._ranges += 1
        return combination([1, 1], [parts, zeros])


class VerticalContributor(OutsideOwner[BlockPlan]):
    """An owner that does not compute deals its columns."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(wire, facts, data, schedule_of(data.partition, facts, wire.computing))

    def _send_histograms(self, cliques: Sequence[Clique]) -> None:
        split_of(self._wire).send(self._wire, self._schedule.facts, self._counts, cliques, ())

    def _send_columns(self, plan: BlockPlan) -> None:
        me = self._wire.me
        if me not in plan.inputs():
            return
        dealer = Dealer.contributing(self._wire)
        for row_range in plan.row_ranges():
            for start, stop in row_range:
                dealer.deal(self._rows.one_hot(start, stop, plan.joints(me), np.uint16))
