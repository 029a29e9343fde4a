"""The marginals of a population whose columns have several owners: the work of each request, alike in every
backend.

A backend computes tables over several owners' rows, and adds up the owners' own histograms as it adds up
custodians' counts; what they make of the union's marginals is local on shares (`union`). Who learns what: as
of the backend's protocols.

    PopulationMarginals   at a computing party, whatever its shares are; AdditivePopulation: parts that add up, of a `BlockPlan`
    OutsideOwner          at an owner that does not compute
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals, Marginals, S
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.vertical import union
from mpc_protocols.vertical.block_plan import BlockPlan
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.schedule import Schedule, contributed_rows, covering, own_histograms, own_rows
from mpc_protocols.wire import Wire

P = TypeVar("P")
"""A backend's plan of tables."""


class PopulationMarginals(Marginals[S], Generic[S, P]):
    """One computing party's shares of the population's marginals."""

    def _follow(self, schedule: Schedule[P], rows: CodedRows | None, me: int) -> None:
        """Begin. rows: this party's own, if it owns columns."""
        self._schedule, self._rows = schedule, rows
        self._histograms = own_histograms(rows, schedule, me)
        self._tables: dict[Clique, S] = {}
        self._somebody: S | None = None
        """R, where the union needs it (`union`)."""

    @abstractmethod
    def _counted(self, counts: LocalCounts | None) -> Marginals[S]:
        """The sums of everybody's counts, of which these are this party's."""

    @abstractmethod
    def _compute(self, plan: P, tables: Sequence[Clique]) -> None:
        """All tables of a plan, and R where the union needs it for the first time."""

    @abstractmethod
    def _of_union(self, clique: Clique) -> S:
        """A marginal of the union from tables and R. Local."""

    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> dict[Clique, S]:
        fresh = self._schedule.declare(levels)
        if self._rows is not None:
            self._rows.declare(fresh)
        work = self._schedule.next(cliques)
        if work.histograms:
            own = self._counted(self._histograms)
            own.share(work.histograms, (), inputs)
            self._tables |= {table: own.shared(table) for table in work.histograms}
        if work.plan is not None:
            self._compute(work.plan, work.tables)
        if self._schedule.partition.population == "intersection":
            return {clique: self._tables.pop(clique) for clique in cliques}
        return {clique: self._of_union(clique) for clique in cliques}

    def _assembled(self, clique: Clique, part: Callable[[S], Elements]) -> Elements:
        """`_of_union` on one part of each share."""
        assert self._somebody is not None
        partition, sizes = self._schedule.partition, self._schedule.facts.sizes
        joint: Mapping[Clique, Elements] = {
            table: union.sum_down(part(self._tables[source]), source, table, sizes)
            for table in union.tables_of(partition, clique)
            if (source := covering(partition, table, list(self._tables))) is not None
        }
        return union.assemble(partition, clique, sizes, joint, part(self._somebody))


class AdditivePopulation(PopulationMarginals[Elements, BlockPlan], AdditiveMarginals):
    """One computing party's parts of the population's marginals, modulo 2^32."""

    def __init__(
        self, wire: Wire, facts: StudyFacts, data: VerticalData, schedule: Schedule[BlockPlan]
    ) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(wire.session_id, binding(b"vertical", data.partition.to_bytes()))
        self._wire = wire
        self._follow(schedule, own_rows(data, facts, wire.me), wire.me)

    @abstractmethod
    def _cells(self, plan: BlockPlan) -> Elements:
        """This party's parts of the cells of all tables, in the plan's order; before them of R, if the union
        needs it."""

    def _of_union(self, clique: Clique) -> Elements:
        return self._assembled(clique, lambda share: share)

    def _compute(self, plan: BlockPlan, tables: Sequence[Clique]) -> None:
        cells, start = self._cells(plan), 0
        if plan.counts_somebody:
            self._somebody, start = cells[:1], 1
        for table, of in zip(tables, plan.products, strict=True):
            stop = start + self._schedule.facts.cells(table)
            self._tables[table] = union.sum_down(cells[start:stop], of.columns, table, plan.sizes)
            start = stop


class OutsideOwner(ABC, Generic[P]):
    """An owner that does not compute: answers the leader's requests by its histograms (union) and its
    columns."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData, schedule: Schedule[P]) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        self._wire, self._schedule = wire, schedule
        self._rows = contributed_rows(data, facts, wire.me)
        self._counts = own_histograms(self._rows, schedule, wire.me)

    def send(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        """Its part in the input of these cliques. Blocks while the computing parties are behind."""
        self._rows.declare(self._schedule.declare(levels))
        work = self._schedule.next(cliques)
        if work.histograms:
            self._send_histograms(work.histograms)
        if work.plan is not None:
            self._send_columns(work.plan)

    @abstractmethod
    def _send_histograms(self, cliques: Sequence[Clique]) -> None:
        """Split its own counts of these."""

    @abstractmethod
    def _send_columns(self, plan: P) -> None:
        """Its part in the tables of a plan, if it has one."""
