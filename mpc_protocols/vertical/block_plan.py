"""A plan whose joints are all one-hot columns, computed block by block of the common table's rows; chosen
alike at every party.

Lefts that have the same rights make one product of matrices. What a backend's columns and products cost
decides whose own cliques have their narrowest column, times w, on the right (`block_planner`). Public: names
and sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.schedule import Planner
from mpc_protocols.vertical.tables import (
    Factor,
    Group,
    Joint,
    Table,
    Tables,
    by_left,
    cheapest,
    row_ranges,
    table_of,
)


@dataclass(frozen=True)
class BlockPlan(Tables[Table]):
    """All that the parties do for one batch of tables. row_block: rows at a time, of ranges of at most
    `longest` rows."""

    row_block: int
    longest: int

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Matrix products: lefts that have the same rights go together."""
        lefts: dict[tuple[Factor, ...], list[Joint]] = {}
        for left, factors in by_left(self.products).items():
            lefts.setdefault(tuple(sorted(factors)), []).append(left)
        return tuple(Group(tuple(of), factors) for factors, of in lefts.items())

    @property
    def counts(self) -> int:
        """Numbers that come out: cells of all tables, and R if it is computed."""
        return self.cells() + self.counts_somebody

    def row_ranges(self) -> list[list[tuple[int, int]]]:
        """The blocks (first row and end) of each range of rows, whose parts are summed before anything is
        made of them."""
        return row_ranges(self.partition.rows, self.longest, self.row_block)

    def multiplied(self) -> list[int]:
        """Columns of each round of row-wise products."""
        members, rounds = len(self.partition.owners) if self.needs_memberships else 1, []
        while members > 1:
            rounds.append(members // 2)
            members -= members // 2
        return rounds + [sum(map(self.breadth, level)) for level in self.levels()]


def block_planner(
    longest: int, estimate: Callable[[BlockPlan, int], int], block_rows: Callable[[BlockPlan], int]
) -> Planner[BlockPlan]:
    """How a backend plans. longest: rows of a range. estimate: what a plan costs so many computing parties,
    for comparing plans. block_rows: how many rows a party takes at a time."""

    def make_plan(
        partition: Partition,
        sizes: Mapping[str, int],
        computing: int,
        tables: Sequence[Clique],
        needs_memberships: bool,
    ) -> BlockPlan:
        def planned(split_owners: frozenset[int]) -> BlockPlan:
            products = tuple(table_of(partition, sizes, table, split_owners) for table in tables)
            needed = needs_memberships or any(product.right.restricted for product in products)
            return BlockPlan(partition, sizes, products, needed, 1, longest)

        best = cheapest(partition, tables, planned, lambda plan: estimate(plan, computing))
        rows = min(partition.rows, longest)
        return replace(best, row_block=max(1, -(-rows // max(1, -(-rows // block_rows(best))))))

    return make_plan
