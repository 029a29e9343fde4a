"""The marginals of a population whose columns have several owners: the work of each request, alike in every backend.

A backend computes tables over several owners' rows, and adds up the owners' own histograms as it adds up custodians' counts; what
they make of the union's marginals is local on shares (`union`). Who learns what: as of the backend's protocols.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.marginals import Marginals, S
from mpc_protocols.functionality import Clique, Level, LocalCounts
from mpc_protocols.vertical import union
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.schedule import Schedule, covering, own_histograms

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
