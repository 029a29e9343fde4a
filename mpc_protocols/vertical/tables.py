"""Tables over several owners' columns, as every backend plans them: LEFT^T RIGHT (`docs/design/vertical.md`
2).

    LEFT     the joint of some columns of ONE owner
    RIGHT    row by row the product of joints of the other owners; where the table is restricted to the rows that ALL owners of
             the study hold (the intersection's) and an owner is not among the clique's, times w, the product of all memberships

How left and right come to be shared, and what that costs, is the backend's affair. Public: names and sizes
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, Generic, TypeVar

from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import Partition

WIDE: Final = 64
"""Cells from which on a joint goes left, whichever owner's it is."""


@dataclass(frozen=True, order=True)
class Joint:
    """The joint of some columns of one owner."""

    owner: int
    columns: Clique


@dataclass(frozen=True, order=True)
class Factor:
    """The row-wise product of joints of different owners, and of all memberships if `restricted`. No part:
    memberships alone."""

    parts: tuple[Joint, ...]
    restricted: bool

    def steps(self) -> Iterator[Factor]:
        """The factors on the way to this one that take a secure product, itself last."""
        for count in range(1, len(self.parts) + 1):
            if count > 1 or self.restricted:
                yield Factor(self.parts[:count], self.restricted)


@dataclass(frozen=True)
class Table:
    """One table: left^T right."""

    left: Joint
    right: Factor

    @property
    def columns(self) -> Clique:
        """The table's columns as it comes out, row-major."""
        return tuple(name for part in (self.left, *self.right.parts) for name in part.columns)

    @property
    def one_hot(self) -> tuple[Joint, ...]:
        """The joints that their owners input as one-hot columns."""
        return (self.left, *self.right.parts)


@dataclass(frozen=True)
class Group:
    """One matrix product, or one order of the rows: every left with every right."""

    lefts: tuple[Joint, ...]
    rights: tuple[Factor, ...]


T = TypeVar("T", bound=Table)
Q = TypeVar("Q")


@dataclass(frozen=True)
class Tables(Generic[T]):
    """All tables of one request.

    partition, sizes: of the study. products: in the order of the tables. needs_memberships: all memberships
    are multiplied (`restricted` factors; union: to count the rows somebody holds).
    """

    partition: Partition
    sizes: Mapping[str, int]
    products: tuple[T, ...]
    needs_memberships: bool

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

    def cells(self) -> int:
        """Cells of all tables."""
        return sum(self.width(product.left) * self.breadth(product.right) for product in self.products)

    def shape(self, group: Group) -> tuple[int, int]:
        """Columns of a group's lefts and of its rights: of its table of cells."""
        return sum(map(self.width, group.lefts)), sum(map(self.breadth, group.rights))

    def places(self, group: Group) -> Iterator[tuple[tuple[Joint, Factor], tuple[slice, slice]]]:
        """Where in a group's table of cells that of each left and each right stands."""
        top = 0
        for left in group.lefts:
            bottom, first = top + self.width(left), 0
            for right in group.rights:
                end = first + self.breadth(right)
                yield (left, right), (slice(top, bottom), slice(first, end))
                first = end
            top = bottom

    @property
    def counts_somebody(self) -> bool:
        """Whether R is computed besides the tables: the number of rows that anybody holds (`union`)."""
        return self.needs_memberships and self.partition.population == "union"

    @cached_property
    def _joints(self) -> dict[int, tuple[Clique, ...]]:
        order = {name: place for place, name in enumerate(self.partition.columns)}
        used = {part for product in self.products for part in product.one_hot}
        joints: dict[int, list[Clique]] = {
            owner: [()] if self.needs_memberships else [] for owner in self.partition.owners
        }
        if self.needs_memberships:
            used = {part for part in used if part.columns}
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


def row_ranges(rows: int, longest: int, block: int) -> list[list[tuple[int, int]]]:
    """The blocks (first row and end) of each range of at most `longest` rows, whose counts are summed before
    they are left."""
    ends = [(first, min(first + longest, rows)) for first in range(0, rows, max(1, longest))]
    return [
        [(start, min(start + block, end)) for start in range(first, end, block)] for first, end in ends
    ] or [[]]


def by_left(products: Sequence[T]) -> dict[Joint, list[Factor]]:
    """The rights of each left."""
    rights: dict[Joint, list[Factor]] = {}
    for product in products:
        rights.setdefault(product.left, []).append(product.right)
    return rights


def table_of(
    partition: Partition, sizes: Mapping[str, int], clique: Clique, split_owners: frozenset[int]
) -> Table:
    """How a clique's table is made. split_owners: those whose own cliques have their narrowest column on the
    right."""
    columns: dict[int, list[str]] = {}
    for name in clique:
        columns.setdefault(partition.columns[name], []).append(name)
    restricted = partition.population == "intersection" and len(columns) < len(partition.owners)

    def width(part: Joint) -> int:
        return prod(sizes[name] for name in part.columns)

    parts = [Joint(owner, tuple(columns[owner])) for owner in partition.owners if owner in columns]
    if len(parts) == 1:
        (whole,) = parts
        if whole.owner in split_owners and len(whole.columns) > 1:
            least = min(whole.columns, key=lambda name: sizes[name])
            rest = tuple(name for name in whole.columns if name != least)
            return Table(Joint(whole.owner, rest), Factor((Joint(whole.owner, (least,)),), True))
        return Table(whole, Factor((), True))
    widest = max(parts, key=width)
    left = widest if len(parts) > 2 or len(widest.columns) > 1 or width(widest) > WIDE else parts[0]
    rights = sorted((part for part in parts if part != left), key=lambda part: (width(part), part))
    return Table(left, Factor(tuple(rights), restricted))


def cheapest(
    partition: Partition,
    tables: Sequence[Clique],
    planned: Callable[[frozenset[int]], Q],
    estimate: Callable[[Q], int],
) -> Q:
    """The plan of least cost. planned: by whose own cliques are split; tried owner by owner, in order."""
    split_owners: frozenset[int] = frozenset()
    best = planned(split_owners)
    alone = [
        owner
        for owner in partition.owners
        if any(len(table) > 1 and {partition.columns[name] for name in table} == {owner} for table in tables)
    ]
    for owner in alone:
        other = planned(split_owners | {owner})
        if estimate(other) < estimate(best):
            split_owners, best = split_owners | {owner}, other
    return best
