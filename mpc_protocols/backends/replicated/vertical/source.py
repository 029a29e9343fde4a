"""The marginals of vertically split data as the oracle's shares, in place of everybody's counts
(`docs/design/vertical.md` 3).

Each batch of marginals becomes tables over the owners' joint rows (`plan`; the union takes one for every two
or more owners of a clique, `union`). Each block of the common table's rows runs input of one-hot columns and
memberships, the product of all memberships, factors row by row, sums by secret order (`group_by`) and
products of matrices (`matrices`); after the last block ONE resharing of all cells. Where rows are summed
modulo 2^16, the sums over up to 57,343 rows are lifted to 2^32 before (`lift`). The union's one-owner tables are
the owners' own histograms, input as horizontal counts are (`marginals`).

Threat model: semi-honest, at most one of the three computing parties corrupted, with any number of owners
that do not compute; assumption `prg`. Every message is uniform to its receiver (argued in `matrices`,
`group_by`, `trio`). Each party learns which tables are computed, and u, the rows of the common table; nobody
learns which rows another owner holds, how many are in common, or a count. Counts are at most u < 2^31, and
below 2^16 over the rows that are summed modulo 2^16: no ring overflows. Memory: one row block
(`planner.BLOCK_BYTES` of shares and what its products take), the cells, and each owner's own codes; it does
not grow with u beyond those.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add, attrgetter

from mpc_protocols.backends.replicated.marginals import MarginalSource, SharedMarginals
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.execution import PlanExecution
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.backends.replicated.vertical.planner import schedule_of
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.vertical.population import PopulationMarginals
from mpc_protocols.vertical.schedule import own_rows


class RingPopulation(PopulationMarginals[RingShare, Plan], MarginalSource):
    """One computing party's shares of the population's marginals, modulo 2^32, however tables are computed."""

    @abstractmethod
    def _by_range(self, plan: Plan) -> Iterator[RingShare]:
        """The cells of all tables, in the plan's order, over all rows or over ranges of them that together are all;
        before them R, if the union needs it."""

    def _of_union(self, clique: Clique) -> RingShare:
        return RingShare(
            self._assembled(clique, attrgetter("own")), self._assembled(clique, attrgetter("next"))
        )

    def _compute(self, plan: Plan, tables: Sequence[Clique]) -> None:
        cells = reduce(add, self._by_range(plan))
        if plan.counts_somebody:
            self._somebody, cells = cells[:1], cells[1:]
        start = 0
        for table in tables:
            stop = start + self._schedule.facts.cells(table)
            self._tables[table] = cells[start:stop]
            start = stop


class VerticalMarginals(RingPopulation):
    """Against parties that follow the protocol."""

    def __init__(self, trio: Trio, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(trio, binding(b"vertical", data.partition.to_bytes()))
        rows = own_rows(data, facts, trio.me)
        self._follow(schedule_of(data.partition, facts, trio.wire.computing), rows, trio.me)

    def _counted(self, counts: LocalCounts | None) -> SharedMarginals:
        return SharedMarginals(self._trio, self._schedule.facts, counts)

    def _by_range(self, plan: Plan) -> Iterator[RingShare]:
        yield PlanExecution(self._trio, plan, self._rows).cells()
