"""What is computed for each request, and what an owner brings to it: alike at computing parties and contributors (`source`).

The intersection takes one table for each clique; the union takes the owners' own histograms and a table for every two or more
owners of a clique (`union`), of which those that an earlier request left, or that are sums of another's cells, are not computed
again. Everything but `own_histograms` is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.columns.records import CodedRows
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.partition import Partition
from mpc_protocols.replicated.vertical import union
from mpc_protocols.replicated.vertical.plan import Plan
from mpc_protocols.replicated.vertical.planner import make_plan


@dataclass(frozen=True)
class Work:
    """The work of one request: owners' own histograms, tables over several owners' rows, and how these are computed."""

    histograms: tuple[Clique, ...]
    tables: tuple[Clique, ...]
    plan: Plan | None


class Schedule:
    """The tables still to be computed for the cliques asked for; every party and contributor of a run follows it alike."""

    def __init__(self, partition: Partition, facts: StudyFacts, computing: int) -> None:
        self.partition = partition
        self.facts = facts
        self._computing = computing
        self._histograms: list[Clique] = []
        self._tables: list[Clique] = []
        self._somebody = False

    def declare(self, levels: Sequence[Level]) -> list[Level]:
        """Make coarser versions of columns known that cliques may name from now on; returns those that were not."""
        fresh = [level for level in levels if level.name not in self.facts.sizes]
        self.partition = self.partition.with_levels(fresh)
        self.facts = self.facts.with_levels(fresh)
        return fresh

    def next(self, cliques: Sequence[Clique]) -> Work:
        """The work for the cliques that the oracle shares now; they count as shared from then on."""
        if self.partition.population == "intersection":
            return Work((), tuple(cliques), self._plan(cliques, needs_memberships=False))
        wanted = sorted(
            {table for clique in cliques for table in union.tables_of(self.partition, clique)},
            key=lambda table: (-len(table), table),
        )
        histograms = self._fresh(
            [t for t in wanted if len(union.owners_of(self.partition, t)) == 1], self._histograms
        )
        tables = self._fresh([t for t in wanted if len(union.owners_of(self.partition, t)) > 1], self._tables)
        needs_memberships, self._somebody = not self._somebody, True
        return Work(
            tuple(histograms),
            tuple(tables),
            self._plan(tables, needs_memberships) if tables or needs_memberships else None,
        )

    def _plan(self, tables: Sequence[Clique], needs_memberships: bool) -> Plan:
        return make_plan(self.partition, self.facts.sizes, self._computing, tables, needs_memberships)

    def _fresh(self, tables: Sequence[Clique], earlier: list[Clique]) -> list[Clique]:
        """Those (largest first) that no earlier table of the same owners covers; they are earlier ones from now on."""
        fresh = []
        for table in tables:
            if covering(self.partition, table, earlier) is None:
                fresh.append(table)
                earlier.append(table)
        return fresh


def covering(partition: Partition, table: Clique, earlier: Sequence[Clique]) -> Clique | None:
    """The first earlier table over the same owners that has all columns of this one."""
    owners = union.owners_of(partition, table)
    return next(
        (
            other
            for other in earlier
            if set(table) <= set(other) and union.owners_of(partition, other) == owners
        ),
        None,
    )


def own_histograms(rows: CodedRows | None, schedule: Schedule, me: int) -> LocalCounts:
    """An owner's own histograms as horizontal counts: zeros for what another owner has."""

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [
            rows.counts(clique)
            if rows is not None and union.owners_of(schedule.partition, clique) == (me,)
            else np.zeros(schedule.facts.cells(clique), np.int64)
            for clique in cliques
        ]

    return counts
