"""The marginals of vertically split data as the oracle's shares, in place of everybody's counts (`docs/design/vertical.md` 3).

Each batch of marginals becomes tables over the owners' joint rows (`plan`; the union takes one for every two or more owners of
a clique, `union`). Each block of the common table's rows runs input of one-hot columns and memberships, the product of all
memberships, factors row by row, sums by secret order (`group_by`) and products of matrices (`matrices`); after the last block ONE
resharing of all cells. Where rows are summed modulo 2^16, there is one after fewer than 2^16 rows, with a lift to 2^32. The
union's one-owner tables are the owners' own histograms, input as horizontal counts are (`marginals`).

Threat model: semi-honest, at most one of the three computing parties corrupted, with any number of owners that do not compute;
assumption `prg`. Every message is uniform to its receiver (argued in `matrices`, `group_by`, `trio`). Each party learns which
tables are computed, and u, the rows of the common table; nobody learns which rows another owner holds, how many are in common,
or a count. Counts are at most u < 2^31, and below 2^16 over the rows that are summed modulo 2^16: no ring overflows. Memory: one
row block (`planner.BLOCK_BYTES` of shares and what its products take), the cells, and each owner's own codes; it does not grow
with u beyond those.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.partition import VerticalData
from mpc_protocols.replicated.marginals import MarginalSource, SharedMarginals
from mpc_protocols.replicated.sharing.ring import RingShare
from mpc_protocols.replicated.sharing.trio import Trio
from mpc_protocols.replicated.vertical.execution import PlanExecution
from mpc_protocols.replicated.vertical.plan import Plan
from mpc_protocols.replicated.vertical.planner import schedule_of
from mpc_protocols.vertical import union
from mpc_protocols.vertical.schedule import covering, own_histograms, own_rows


class VerticalMarginals(MarginalSource):
    """One computing party's shares of the population's marginals."""

    def __init__(self, trio: Trio, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(trio, binding(b"vertical", data.partition.to_bytes()))
        self._rows = own_rows(data, facts, trio.me)
        self._schedule = schedule_of(data.partition, facts, trio.wire.computing)
        self._histograms = own_histograms(self._rows, self._schedule, trio.me)
        self._tables: dict[Clique, RingShare] = {}
        self._somebody: RingShare | None = None

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        fresh = self._schedule.declare(levels)
        if self._rows is not None:
            self._rows.declare(fresh)
        work = self._schedule.next(cliques)
        if work.histograms:
            own = SharedMarginals(self._trio, self._schedule.facts, self._histograms)
            own.share(work.histograms, (), inputs)
            self._tables |= {table: own.shared(table) for table in work.histograms}
        if work.plan is not None:
            self._compute(work.plan, work.tables)
        if self._schedule.partition.population == "intersection":
            return {clique: self._tables.pop(clique) for clique in cliques}
        return {clique: self._of_union(clique) for clique in cliques}

    def _of_union(self, clique: Clique) -> RingShare:
        assert self._somebody is not None
        sizes, components = self._schedule.facts.sizes, []
        for which in ("own", "next"):
            joint = {}
            for table in union.tables_of(self._schedule.partition, clique):
                source = covering(self._schedule.partition, table, list(self._tables))
                assert source is not None
                joint[table] = union.sum_down(getattr(self._tables[source], which), source, table, sizes)
            components.append(
                union.assemble(self._schedule.partition, clique, sizes, joint, getattr(self._somebody, which))
            )
        return RingShare(*components)

    def _compute(self, plan: Plan, tables: Sequence[Clique]) -> None:
        """All tables of a plan, and R where the union needs it for the first time."""
        run = PlanExecution(self._trio, plan, self._rows)
        cells, *rest = (run.sum_row_range(row_range) for row_range in plan.row_ranges())
        for more in rest:
            cells = cells + more
        if plan.counts_somebody:
            self._somebody, cells = cells[:1], cells[1:]
        start = 0
        for table in tables:
            stop = start + self._schedule.facts.cells(table)
            self._tables[table] = cells[start:stop]
            start = stop
