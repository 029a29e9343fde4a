"""A plan: how a batch of tables over several owners is computed (`planner` chooses it; public, alike at every
party).

A table is wanted over columns of one or more owners, over the rows that they hold, or that ALL owners of the
study hold ("restricted", the intersection's). It is LEFT^T RIGHT with a row per row of the common table:

    LEFT     the joint of some columns of ONE owner, as one-hot columns that it inputs once (`matrices`), or as the owner's
             secret order of the rows (`group_by`)
    RIGHT    row by row the product of joints of the other owners; where the table is restricted and an owner is not among the
             clique's, times w, the product of all owners' memberships
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.tables import Factor, Group, Joint, Table, Tables, by_left, row_ranges

NARROW_ROWS: Final = (1 << 16) - 1
"""Rows whose counts are below 2^16 whatever they are."""


@dataclass(frozen=True)
class TablePlan(Table):
    """One product: left^T right. by_permutation: left is an order of the rows instead of one-hot columns."""

    by_permutation: bool

    @property
    def one_hot(self) -> tuple[Joint, ...]:
        return self.right.parts if self.by_permutation else super().one_hot


@dataclass(frozen=True)
class Plan(Tables[TablePlan]):
    """All that the parties do for one batch of tables.

    computing: which owners compute (wire numbers below it). tables: what is wanted, in order. sources: for
    each table the product that it is, or is a sum of. element: bytes of the ring in which counts are summed,
    in ranges of at most `narrow` rows if these are 2. row_block: rows at a time.
    """

    computing: int
    tables: tuple[Clique, ...]
    sources: tuple[int, ...]
    element: int
    row_block: int
    narrow: int = NARROW_ROWS

    def groups(self, by_permutation: bool) -> tuple[Group, ...]:
        """Products by what they have in common: those with a matrix product, or those with an order of the
        rows."""
        return self._permuted_groups if by_permutation else self._plain_groups

    @cached_property
    def _plain_groups(self) -> tuple[Group, ...]:
        return self._grouped(False)

    @cached_property
    def _permuted_groups(self) -> tuple[Group, ...]:
        return self._grouped(True)

    def _grouped(self, by_permutation: bool) -> tuple[Group, ...]:
        rights = by_left([product for product in self.products if product.by_permutation == by_permutation])
        lefts: dict[tuple[int, tuple[Factor, ...]], list[Joint]] = {}
        for place, (left, factors) in enumerate(rights.items()):
            lefts.setdefault((place if by_permutation else -1, tuple(sorted(factors))), []).append(left)
        return tuple(Group(tuple(parts), factors) for (_, factors), parts in lefts.items())

    def ordering(self) -> tuple[int, ...]:
        """Owners that do not compute and order the rows."""
        owners = {group.lefts[0].owner for group in self.groups(by_permutation=True)}
        return tuple(owner for owner in self.partition.owners if owner in owners and owner >= self.computing)

    def contributing(self) -> tuple[int, ...]:
        """Owners that do not compute and have anything to send."""
        return tuple(
            owner
            for owner in self.partition.owners
            if owner >= self.computing and (self.joints(owner) or owner in self.ordering())
        )

    def row_ranges(self) -> list[list[tuple[int, int]]]:
        """The blocks (first row and end) of each row range: rows whose counts are summed in the plan's ring
        before it is left."""
        rows = self.partition.rows
        return row_ranges(rows, self.narrow if self.element == 2 else rows, self.row_block)

    def cells(self) -> int:
        """Cells of all tables."""
        return sum(prod(self.sizes[name] for name in table) for table in self.tables)

    def helper(self, owner: int) -> int:
        """Who helps a computing owner to order the rows: of the other two, who inputs least."""
        others = [party for party in range(self.computing) if party != owner]
        return min(others, key=lambda party: (party in self.partition.owners, self.input_width(party), party))


def layout_of(plan: Plan, left: Joint, columns: int, rows: int) -> Layout:
    """The sizes of an order of `rows` rows by a joint."""
    return Layout(rows, plan.width(left), columns, plan.element)
