"""What is computed for each request, and what an owner brings to it: alike at computing parties and
contributors.

The intersection takes one table for each clique; the union takes the owners' own histograms and a table for
every two or more owners of a clique (`union`), of which those that an earlier request left, or that are sums
of another's cells, are not computed again. Everything but `own_rows` and `own_histograms` is public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.vertical import union
from mpc_protocols.vertical.partition import Partition, VerticalData
from mpc_protocols.vertical.records import CodedRows

P = TypeVar("P")
"""A backend's plan of tables."""
Planner = Callable[[Partition, Mapping[str, int], int, Sequence[Clique], bool], P]
"""How a backend plans tables: of the partition, its columns' sizes, how many parties compute, the tables, and
whether memberships are needed besides."""


@dataclass(frozen=True)
class Work(Generic[P]):
    """The work of one request: owners' own histograms, tables over several owners' rows, and how these are
    computed."""

    histograms: tuple[Clique, ...]
    tables: tuple[Clique, ...]
    plan: P | None


class Schedule(Generic[P]):
    """The tables still to be computed for the cliques asked for; every party and contributor of a run follows
    it alike."""

    def __init__(
        self, partition: Partition, facts: StudyFacts, computing: int, planner: Planner[P], anew: bool = False
    ) -> None:
        """anew: whether all tables of a union's request are planned for it, an owner's own among them, since
        owners' columns are known to be consistent within one request only; else owners bring their own as
        counts, and earlier tables serve again.
        """
        self.partition = partition
        self.facts = facts
        self._computing, self._planner = computing, planner
        self._anew = anew
        self._histograms: list[Clique] = []
        self._tables: list[Clique] = []
        self._somebody = False

    def declare(self, levels: Sequence[Level]) -> list[Level]:
        """Make coarser versions of columns known that cliques may name from now on; returns those that were
        not."""
        fresh = [level for level in levels if level.name not in self.facts.sizes]
        self.partition = self.partition.with_levels(fresh)
        self.facts = self.facts.with_levels(fresh)
        return fresh

    def next(self, cliques: Sequence[Clique]) -> Work[P]:
        """The work for the cliques that the oracle shares now; they count as shared from then on."""
        if self.partition.population == "intersection":
            return Work((), tuple(cliques), self._plan(cliques, needs_memberships=False))
        wanted = sorted(
            {table for clique in cliques for table in union.tables_of(self.partition, clique)},
            key=lambda table: (-len(table), table),
        )
        if self._anew:
            self._tables.clear()
        brought = [t for t in wanted if not self._anew and len(union.owners_of(self.partition, t)) == 1]
        histograms = self._fresh(brought, self._histograms)
        tables = self._fresh([t for t in wanted if t not in brought], self._tables)
        needs_memberships, self._somebody = not self._somebody, True
        return Work(
            tuple(histograms),
            tuple(tables),
            self._plan(tables, needs_memberships) if tables or needs_memberships else None,
        )

    def _plan(self, tables: Sequence[Clique], needs_memberships: bool) -> P:
        return self._planner(self.partition, self.facts.sizes, self._computing, tables, needs_memberships)

    def _fresh(self, tables: Sequence[Clique], earlier: list[Clique]) -> list[Clique]:
        """Those (largest first) that no earlier table of the same owners covers; they are earlier ones from
        now on."""
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


def own_rows(data: VerticalData, facts: StudyFacts, me: int) -> CodedRows | None:
    """This party's records, checked: None if it owns no column. Raises `DataRefused`, `StudyInvalid`."""
    partition = data.partition
    if set(partition.columns) != set(facts.sizes):
        raise StudyInvalid("The owners' columns are not those of the study's domain.")
    if (data.own is None) == (me in partition.owners):
        raise DataRefused(f"Party {me} must bring its rows exactly if it owns columns of the study.")
    if partition.population == "union" and partition.rows > facts.row_cap:
        raise DataRefused(
            "The common table has more rows than the study's max_rows; raise max_rows in the study."
        )
    if data.own is None:
        return None
    data.own.check(partition, me, facts.sizes)
    if len(data.own.rows) > facts.row_cap:
        raise DataRefused(
            "This party has more records than the study's max_rows; raise max_rows in the study."
        )
    return CodedRows(data.own, facts.sizes)


def contributed_rows(data: VerticalData, facts: StudyFacts, me: int) -> CodedRows:
    """As `own_rows`, of a party that does not compute."""
    rows = own_rows(data, facts, me)
    if rows is None:
        raise DataRefused(f"Party {me} neither computes nor owns columns; leave it out of the study.")
    return rows


def own_histograms(rows: CodedRows | None, schedule: Schedule[P], me: int) -> LocalCounts:
    """An owner's own histograms as horizontal counts: zeros for what another owner has."""

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [
            rows.counts(clique)
            if rows is not None and union.owners_of(schedule.partition, clique) == (me,)
            else np.zeros(schedule.facts.cells(clique), np.int64)
            for clique in cliques
        ]

    return counts
