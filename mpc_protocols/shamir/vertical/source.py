"""The marginals of vertically split data as the holders' parts, in place of everybody's counts (`docs/design/shamir.md` 6).

Owners deal their one-hot columns as Shamir shares modulo p (`dealer`); a table over two owners is a matrix product on shares,
whose cells are reduced and converted ONCE for a range of rows (`execution`, `counts`). The union's one-owner tables are the
owners' own histograms, input as horizontal counts are (`marginals`).

Threat model: semi-honest, at most t of the m computing parties together, with any contributors and recipients. Assumption: AES.
Each party learns which tables are computed, and u, the rows of the common table; nobody learns which rows another owner holds,
how many are in common, or a count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.partition import VerticalData
from mpc_protocols.shamir.circuits.gates import ShamirGates
from mpc_protocols.shamir.marginals import HeldMarginals, send_counts
from mpc_protocols.shamir.sharing.field import threshold_of
from mpc_protocols.shamir.vertical.counts import held_counts
from mpc_protocols.shamir.vertical.dealer import Dealer, Shares, evaluators, zero_shares, zero_streams
from mpc_protocols.shamir.vertical.execution import PlanExecution
from mpc_protocols.shamir.vertical.plan import TablesPlan, schedule_of
from mpc_protocols.shamir.vertical.prime import Residues, combination
from mpc_protocols.vertical import union
from mpc_protocols.vertical.population import PopulationMarginals
from mpc_protocols.vertical.schedule import contributed_rows, own_histograms, own_rows
from mpc_protocols.wire import Wire


class VerticalMarginals(PopulationMarginals[Elements, TablesPlan], AdditiveMarginals):
    """One computing party's parts of the population's marginals; zeros at a party that is no holder."""

    def __init__(self, gates: ShamirGates, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        wire = gates.mesh.wire
        super().__init__(wire.session_id, binding(b"vertical", data.partition.to_bytes()))
        self._gates, self._wire = gates, wire
        rows = own_rows(data, facts, wire.me)
        self._follow(schedule_of(data.partition, facts, wire.computing), rows, wire.me)
        self._dealer, self._shares = Dealer.computing(wire), Shares(wire)
        evaluates = wire.me in evaluators(threshold_of(wire.computing))
        self._zeros = zero_streams(wire) if evaluates else {}
        self._ranges = 0

    def _counted(self, counts: LocalCounts | None) -> HeldMarginals:
        return HeldMarginals(self._wire, self._schedule.facts, counts)

    def _of_union(self, clique: Clique) -> Elements:
        return self._assembled(clique, lambda share: share)

    def _compute(self, plan: TablesPlan, tables: Sequence[Clique]) -> None:
        for owner in plan.inputs():
            if owner >= self._wire.computing:
                self._shares.hear(owner)
        run = PlanExecution(self._wire, plan, self._rows, self._dealer, self._shares)
        cells: Elements = np.zeros(plan.counts, np.uint32)
        for row_range in plan.row_ranges():
            parts = run.parts(row_range)
            cells += held_counts(self._gates, None if parts is None else self._masked(parts), plan.counts)
        start = 0
        if plan.counts_somebody:
            self._somebody, start = cells[:1], 1
        for table, of in zip(tables, plan.products, strict=True):
            stop = start + self._schedule.facts.cells(table)
            self._tables[table] = union.sum_down(cells[start:stop], of.columns, table, plan.sizes)
            start = stop

    def _masked(self, parts: Residues) -> Residues:
        zeros = zero_shares(self._wire, self._zeros, self._ranges, len(parts))
        self._ranges += 1
        return combination([1, 1], [parts, zeros])


class VerticalContributor:
    """An owner that does not compute: answers the leader's requests by its histograms (union) and its dealt columns."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        rows = contributed_rows(data, facts, wire.me)
        self._wire, self._rows = wire, rows
        self._schedule = schedule_of(data.partition, facts, wire.computing)
        self._counts = own_histograms(rows, self._schedule, wire.me)

    def send(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        """Its part in the input of these cliques. Blocks while the computing parties are behind."""
        self._rows.declare(self._schedule.declare(levels))
        work = self._schedule.next(cliques)
        if work.histograms:
            send_counts(self._wire, self._schedule.facts, self._counts, work.histograms, ())
        plan, me = work.plan, self._wire.me
        if plan is None or me not in plan.inputs():
            return
        dealer = Dealer.contributing(self._wire)
        for row_range in plan.row_ranges():
            for start, stop in row_range:
                dealer.deal(self._rows.one_hot(start, stop, plan.joints(me), np.uint16))
