"""A plan: how a batch of tables over several owners is computed (`planner` chooses it; public, alike at every party).

A table is wanted over columns of one or more owners, over the rows that they hold, or that ALL owners of the study hold
("restricted", the intersection's). It is LEFT^T RIGHT with a row per row of the common table:

    LEFT     the joint of some columns of ONE owner, as one-hot columns that it inputs once (`matrices`), or as the owner's
             secret order of the rows (`group_by`)
    RIGHT    row by row the product of joints of the other owners; where the table is restricted and an owner is not among the
             clique's, times w, the product of all owners' memberships
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from mpc_protocols.columns.layout import Layout
from mpc_protocols.functionality import Clique
from mpc_protocols.partition import Partition

NARROW_ROWS: Final = (1 << 16) - 1
"""Rows whose counts are below 2^16 whatever they are."""


@dataclass(frozen=True, order=True)
class Joint:
    """The joint of some columns of one owner."""

    owner: int
    columns: Clique


@dataclass(frozen=True, order=True)
class Factor:
    """The row-wise product of joints of different owners, and of all memberships if `restricted`. No part: memberships alone."""

    parts: tuple[Joint, ...]
    restricted: bool

    def steps(self) -> Iterator[Factor]:
        """The factors on the way to this one that take a secure product, itself last."""
        for count in range(1, len(self.parts) + 1):
            if count > 1 or self.restricted:
                yield Factor(self.parts[:count], self.restricted)


@dataclass(frozen=True)
class TablePlan:
    """One product: left^T right. by_permutation: left is an order of the rows instead of one-hot columns."""

    left: Joint
    right: Factor
    by_permutation: bool

    @property
    def columns(self) -> Clique:
        """The table's columns as it comes out, row-major."""
        return tuple(name for part in (self.left, *self.right.parts) for name in part.columns)


@dataclass(frozen=True)
class Group:
    """One matrix product, or one order of the rows: every left with every right."""

    lefts: tuple[Joint, ...]
    rights: tuple[Factor, ...]


@dataclass(frozen=True)
class Plan:
    """All that the parties do for one batch of tables.

    partition, sizes: of the study. computing: which owners compute (wire numbers below it). tables: what is wanted, in order.
    sources: for each table the product that it is, or is a sum of. needs_memberships: all memberships are multiplied
    (`restricted` factors; union: to count the rows somebody holds). element: bytes of the ring in which counts are summed, in
    ranges of at most NARROW_ROWS rows if these are 2. row_block: rows at a time.
    """

    partition: Partition
    sizes: Mapping[str, int]
    computing: int
    tables: tuple[Clique, ...]
    products: tuple[TablePlan, ...]
    sources: tuple[int, ...]
    needs_memberships: bool
    element: int
    row_block: int

    def width(self, part: Joint) -> int:
        """Cells of a joint; 1 for a membership."""
        return prod(self.sizes[name] for name in part.columns)

    def breadth(self, factor: Factor) -> int:
        """Columns of a factor."""
        return prod(self.width(part) for part in factor.parts)

    def joints(self, owner: int) -> tuple[Clique, ...]:
        """Joints that an owner inputs as one-hot columns, in this order; () is its membership."""
        return self._joints.get(owner, ())

    def input_width(self, owner: int) -> int:
        """Columns that an owner inputs."""
        return self._input_widths.get(owner, 0)

    def inputs(self) -> tuple[int, ...]:
        """Owners with anything to input, in the study's order."""
        return tuple(owner for owner in self.partition.owners if self.joints(owner))

    def levels(self) -> tuple[tuple[Factor, ...], ...]:
        """Factors that take a secure product, in rounds; each needs only those of the rounds before."""
        return self._levels

    def groups(self, by_permutation: bool) -> tuple[Group, ...]:
        """Products by what they have in common: those with a matrix product, or those with an order of the rows."""
        return self._permuted_groups if by_permutation else self._plain_groups

    @cached_property
    def _joints(self) -> dict[int, tuple[Clique, ...]]:
        order = {name: place for place, name in enumerate(self.partition.columns)}
        used = {
            part
            for product in self.products
            for part in (
                product.right.parts if product.by_permutation else (product.left, *product.right.parts)
            )
        }
        joints: dict[int, list[Clique]] = {
            owner: [()] if self.needs_memberships else [] for owner in self.partition.owners
        }
        for part in sorted(
            used, key=lambda part: (len(part.columns), [order[name] for name in part.columns])
        ):
            joints[part.owner].append(part.columns)
        return {owner: tuple(of) for owner, of in joints.items()}

    @cached_property
    def _input_widths(self) -> dict[int, int]:
        return {
            owner: sum(self.width(Joint(owner, joint)) for joint in joints)
            for owner, joints in self._joints.items()
        }

    @cached_property
    def _levels(self) -> tuple[tuple[Factor, ...], ...]:
        steps = {step for right in {product.right for product in self.products} for step in right.steps()}
        depth = {step: len(step.parts) - (0 if step.restricted else 1) for step in steps}
        return tuple(
            tuple(sorted(step for step in steps if depth[step] == level))
            for level in range(1, max(depth.values(), default=0) + 1)
        )

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

    def shape(self, group: Group) -> tuple[int, int]:
        """Columns of a group's lefts and of its rights: of its table of cells."""
        return sum(map(self.width, group.lefts)), sum(map(self.breadth, group.rights))

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

    @property
    def counts_somebody(self) -> bool:
        """Whether R is computed besides the tables: the number of rows that anybody holds (`union`)."""
        return self.needs_memberships and self.partition.population == "union"

    def row_ranges(self) -> list[list[tuple[int, int]]]:
        """The blocks (first row and end) of each row range: rows whose counts are summed in the plan's ring before it is left."""
        rows, limit = self.partition.rows, NARROW_ROWS if self.element == 2 else self.partition.rows
        ends = [(first, min(first + limit, rows)) for first in range(0, rows, max(1, limit))]
        return [
            [(start, min(start + self.row_block, end)) for start in range(first, end, self.row_block)]
            for first, end in ends
        ] or [[]]

    def cells(self) -> int:
        """Cells of all tables."""
        return sum(prod(self.sizes[name] for name in table) for table in self.tables)

    def helper(self, owner: int) -> int:
        """Who helps a computing owner to order the rows: of the other two, who inputs least."""
        others = [party for party in range(self.computing) if party != owner]
        return min(others, key=lambda party: (party in self.partition.owners, self.input_width(party), party))


def by_left(products: Sequence[TablePlan]) -> dict[Joint, list[Factor]]:
    rights: dict[Joint, list[Factor]] = {}
    for product in products:
        rights.setdefault(product.left, []).append(product.right)
    return rights


def layout_of(plan: Plan, left: Joint, columns: int, rows: int) -> Layout:
    """The sizes of an order of `rows` rows by a joint."""
    return Layout(rows, plan.width(left), columns, plan.element)
