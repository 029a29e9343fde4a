"""How a batch of tables over several owners is computed on Shamir shares: chosen from public sizes, alike at every party.

All joints are one-hot columns (`vertical.tables`). An estimate of what travels in all decides whose own cliques have their
narrowest column, times w, on the right: a column that its owner inputs costs t messages a row, a product row by row 2t + 1 times
as much. Rows go in blocks, so that what a party holds of them does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final

from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.partition import Partition
from mpc_protocols.shamir.sharing.field import threshold_of
from mpc_protocols.shamir.vertical.prime import ELEMENT, MAX_ROWS
from mpc_protocols.vertical.schedule import Schedule
from mpc_protocols.vertical.tables import Factor, Group, Joint, Table, Tables, by_left, cheapest, table_of

BLOCK_ELEMENTS: Final = 1 << 21
"""Elements of one block of rows at a party, about: 4 MiB of shares, and as floats four times that."""
MIN_BLOCK_ROWS: Final = 256
"""Rows of a block, if that makes no more than MAX_BLOCK_ELEMENTS."""
MAX_BLOCK_ELEMENTS: Final = 1 << 25
"""Elements of a block of more than one row: 64 MiB, far below the longest message; a row of the widest clique is 32."""


@dataclass(frozen=True)
class TablesPlan(Tables[Table]):
    """All that the parties do for one batch of tables. row_block: rows at a time, of ranges of at most MAX_ROWS."""

    row_block: int

    def shape(self, group: Group) -> tuple[int, int]:
        """Columns of a group's lefts and of its rights."""
        return sum(map(self.width, group.lefts)), sum(map(self.breadth, group.rights))

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
        """The blocks (first row and end) of each range of rows: rows whose counts are below p whatever they are."""
        rows = self.partition.rows
        ends = [(first, min(first + MAX_ROWS, rows)) for first in range(0, rows, MAX_ROWS)]
        return [
            [(start, min(start + self.row_block, end)) for start in range(first, end, self.row_block)]
            for first, end in ends
        ] or [[]]

    def multiplied(self) -> list[int]:
        """Columns of each round of row-wise products."""
        members, rounds = len(self.partition.owners) if self.needs_memberships else 1, []
        while members > 1:
            rounds.append(members // 2)
            members -= members // 2
        return rounds + [sum(map(self.breadth, level)) for level in self.levels()]


def schedule_of(partition: Partition, facts: StudyFacts, computing: int) -> Schedule[TablesPlan]:
    """The schedule of a run of so many computing parties."""
    return Schedule(partition, facts, computing, make_plan)


def make_plan(
    partition: Partition,
    sizes: Mapping[str, int],
    computing: int,
    tables: Sequence[Clique],
    needs_memberships: bool,
) -> TablesPlan:
    """The plan of these tables. needs_memberships: memberships are needed besides (union, the first time)."""

    def planned(split_owners: frozenset[int]) -> TablesPlan:
        products = tuple(table_of(partition, sizes, table, split_owners) for table in tables)
        needed = needs_memberships or any(product.right.restricted for product in products)
        return TablesPlan(partition, sizes, products, needed, 1)

    best = cheapest(partition, tables, planned, lambda plan: estimate(plan, computing))
    return replace(best, row_block=_block_rows(best))


def estimate(plan: TablesPlan, computing: int) -> int:
    """Cost of a plan in all, in bytes and work counted as bytes; for comparing plans; a dry run has the exact figures."""
    threshold, row = threshold_of(computing), 0
    for owner in plan.inputs():
        row += ELEMENT * plan.input_width(owner) * (threshold + (owner > 2 * threshold))
    row += (2 * threshold + 1) * threshold * ELEMENT * sum(plan.multiplied())
    return plan.partition.rows * (row + sum(prod(plan.shape(group)) for group in plan.groups) // 64)


def _block_rows(plan: TablesPlan) -> int:
    width = max(1, sum(map(plan.input_width, plan.inputs())) + sum(plan.multiplied()))
    rows = max(BLOCK_ELEMENTS // width, min(MIN_BLOCK_ROWS, MAX_BLOCK_ELEMENTS // width), 1)
    row_range = min(plan.partition.rows, MAX_ROWS)
    return max(1, -(-row_range // max(1, -(-row_range // rows))))
