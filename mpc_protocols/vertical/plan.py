"""How a batch of tables over several owners is computed: chosen from public sizes, alike at every party and contributor.

A table is wanted over columns of one or more owners, over the rows that they hold, or that ALL owners of the study hold
("restricted", the intersection's). It is LEFT^T RIGHT with a row per row of the common table:

    LEFT     the joint of some columns of ONE owner, as one-hot columns that it inputs once (`matrices`), or, if that would be
             dearer, as the owner's secret order of the rows (`segments`)
    RIGHT    row by row the product of joints of the other owners; where the table is restricted and an owner is not among the
             clique's, times w, the product of all owners' memberships

Choices, by an estimate of what travels in all (bytes; local work counted at what a round is worth it, 64 bytes a microsecond):
  - a clique over several owners has as its left the widest joint; only pairs of narrow columns have the first owner's, so that
    all of them are one product of two matrices;
  - a clique within one owner is either wholly left, with w as its right (one order of the rows for each clique), or has its
    narrowest column times w on the right (one secure product for each column, then plain products): per owner, whichever is less
    over all its cliques;
  - a left joint is one-hot or an order of the rows, whichever is less over all its rights;
  - counts below 2^16 travel modulo 2^16 and the sums are lifted at the end, if that is less.
Rows go in waves, so that what a party holds of them does not grow with their number.

Public: everything here. A plan depends on the partition, the domain's sizes and the tables asked for, never on data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Final

from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.functionality import Partition
from mpc_protocols.vertical.layout import Layout

WAVE: Final = 1 << 24
"""Bytes of shares of one wave of rows at a party, about."""
LEAST_ROWS, MOST_ROWS_OF_A_WAVE = 256, 1 << 16
WIDE = 64
"""Values of a joint from which it is worth an order of the rows of its own."""
ROUND = 1 << 16
"""What a round counts in the choice of the ring (`trio.ROUND_BYTES`)."""
_LIFT_BYTES, _LIFT_ROUNDS = 36, 8


@dataclass(frozen=True, order=True)
class Part:
    """The joint of some columns of one owner."""

    owner: int
    columns: Clique


@dataclass(frozen=True, order=True)
class Factor:
    """The row-wise product of joints of different owners, and of all memberships if `restricted`. No part: memberships alone."""

    parts: tuple[Part, ...]
    restricted: bool

    def steps(self) -> Iterator[Factor]:
        """The factors on the way to this one that take a secure product, itself last."""
        for count in range(1, len(self.parts) + 1):
            if count > 1 or self.restricted:
                yield Factor(self.parts[:count], self.restricted)


@dataclass(frozen=True)
class Product:
    """One table: left^T right. ordered: left is an order of the rows instead of one-hot columns."""

    left: Part
    right: Factor
    ordered: bool

    @property
    def columns(self) -> Clique:
        """The table's columns as it comes out, row-major."""
        return tuple(name for part in (self.left, *self.right.parts) for name in part.columns)


@dataclass(frozen=True)
class Group:
    """One matrix product, or one order of the rows: every left with every right."""

    lefts: tuple[Part, ...]
    rights: tuple[Factor, ...]


@dataclass(frozen=True)
class Plan:
    """All that the parties do for one batch of tables.

    partition, sizes: of the study. computing: which owners compute (wire numbers below it). products: in the order of the
    tables. everyone: all memberships are multiplied (`restricted` factors; union: to count the rows somebody holds). element:
    bytes of the ring in which counts are summed. wave: rows at a time.
    """

    partition: Partition
    sizes: Mapping[str, int]
    computing: int
    products: tuple[Product, ...]
    everyone: bool
    element: int
    wave: int

    def width(self, part: Part) -> int:
        """Cells of a joint; 1 for a membership."""
        return prod(self.sizes[name] for name in part.columns)

    def breadth(self, factor: Factor) -> int:
        """Columns of a factor."""
        return prod(self.width(part) for part in factor.parts)

    def joints(self, owner: int) -> tuple[Clique, ...]:
        """What an owner inputs as one-hot columns, in this order; () is its membership."""
        used = [part for product in self.products
                for part in (product.right.parts if product.ordered else (product.left, *product.right.parts))]
        wanted = {part.columns for part in used if part.owner == owner}
        order = {name: place for place, name in enumerate(self.partition.columns)}
        return (((),) if self.everyone else ()) + tuple(sorted(wanted, key=lambda joint: (len(joint), [order[c] for c in joint])))

    def input_width(self, owner: int) -> int:
        """Columns that an owner inputs."""
        return sum(self.width(Part(owner, joint)) for joint in self.joints(owner))

    def inputs(self) -> tuple[int, ...]:
        """Owners with anything to input, in the study's order."""
        return tuple(owner for owner in self.partition.owners if self.joints(owner))

    def levels(self) -> list[list[Factor]]:
        """Factors that take a secure product, in rounds; each needs only those of the rounds before."""
        steps = {step for product in self.products for step in product.right.steps()}
        depth = {step: len(step.parts) - (0 if step.restricted else 1) for step in steps}
        return [sorted(step for step in steps if depth[step] == level) for level in range(1, max(depth.values(), default=0) + 1)]

    def groups(self, ordered: bool) -> list[Group]:
        """Products by what they have in common: those with a matrix product, or those with an order of the rows."""
        rights: dict[Part, list[Factor]] = {}
        for product in self.products:
            if product.ordered == ordered:
                rights.setdefault(product.left, []).append(product.right)
        lefts: dict[tuple[int, tuple[Factor, ...]], list[Part]] = {}
        for place, (left, factors) in enumerate(rights.items()):
            lefts.setdefault((place if ordered else -1, tuple(sorted(factors))), []).append(left)
        return [Group(tuple(parts), factors) for (_, factors), parts in lefts.items()]

    def shape(self, group: Group) -> tuple[int, int]:
        """Columns of a group's lefts and of its rights: of its table of cells."""
        return sum(map(self.width, group.lefts)), sum(map(self.breadth, group.rights))

    def ordering(self) -> tuple[int, ...]:
        """Owners that do not compute and order the rows."""
        owners = {group.lefts[0].owner for group in self.groups(ordered=True)}
        return tuple(owner for owner in self.partition.owners if owner in owners and owner >= self.computing)

    def contributing(self) -> tuple[int, ...]:
        """Owners that do not compute and have anything to send."""
        return tuple(owner for owner in self.partition.owners
                     if owner >= self.computing and (self.joints(owner) or owner in self.ordering()))

    @property
    def counts_somebody(self) -> bool:
        """Whether R is computed besides the tables: the number of rows that anybody holds (`union`)."""
        return self.everyone and self.partition.population == "union"

    def waves(self) -> list[tuple[int, int]]:
        """First row and end of each wave."""
        return [(start, min(start + self.wave, self.partition.rows)) for start in range(0, self.partition.rows, self.wave)]

    def cells(self) -> int:
        """Cells of all tables."""
        return sum(self.width(product.left) * self.breadth(product.right) for product in self.products)

    def helper(self, owner: int) -> int:
        """Who helps a computing owner to order the rows: of the other two, who inputs least."""
        others = [party for party in range(self.computing) if party != owner]
        return min(others, key=lambda party: (party in self.partition.owners, self.input_width(party), party))


def make_plan(partition: Partition, sizes: Mapping[str, int], computing: int, tables: Sequence[Clique], everyone: bool) -> Plan:
    """The plan of these tables. everyone: memberships are needed besides (union, the first time)."""
    plans = [_cheapest(partition, sizes, computing, tables, everyone, element)
             for element in ((2, 4) if partition.rows < 1 << 16 else (4,))]
    costs = [estimate(plan) + (plan.element == 2) * (_LIFT_BYTES * plan.cells() + _LIFT_ROUNDS * ROUND) for plan in plans]
    best = plans[costs.index(min(costs))]
    return Plan(partition, sizes, computing, best.products, best.everyone, best.element, _wave(best))


def estimate(plan: Plan) -> int:
    """What a plan costs in all, in bytes and work counted as bytes; for comparing plans, `costs` has the exact figures."""
    rows, element = plan.partition.rows, plan.element
    total = sum(rows * element * plan.input_width(owner) * (1 if owner < plan.computing else 2) for owner in plan.inputs())
    total += sum(3 * rows * element * plan.breadth(step) for level in plan.levels() for step in level)
    for group in plan.groups(ordered=False):
        total += rows * prod(plan.shape(group)) // 64
    return total + sum(_order_cost(plan, left, group.rights) for group in plan.groups(ordered=True) for left in group.lefts)


def _order_cost(plan: Plan, left: Part, rights: Sequence[Factor]) -> int:
    columns = sum(map(plan.breadth, rights))
    layout = layout_of(plan, left, columns, plan.partition.rows)
    once = sum(layout.transfers()) + layout.places * (4 + columns)
    return once if left.owner < plan.computing else 3 * once


def layout_of(plan: Plan, left: Part, columns: int, rows: int) -> Layout:
    """The sizes of an order of `rows` rows by a joint."""
    return Layout(rows, plan.width(left), columns, plan.element)


def _cheapest(partition: Partition, sizes: Mapping[str, int], computing: int, tables: Sequence[Clique], everyone: bool,
              element: int) -> Plan:
    """Whether an owner's own cliques are split: owner by owner, in order, whichever costs less."""
    split: frozenset[int] = frozenset()
    best = _plan(partition, sizes, computing, tables, everyone, element, split)
    alone = [owner for owner in partition.owners
             if any(len(table) > 1 and {partition.columns[name] for name in table} == {owner} for table in tables)]
    for owner in alone:
        other = _plan(partition, sizes, computing, tables, everyone, element, split | {owner})
        if estimate(other) < estimate(best):
            split, best = split | {owner}, other
    return best


def _plan(partition: Partition, sizes: Mapping[str, int], computing: int, tables: Sequence[Clique], everyone: bool,
          element: int, split: frozenset[int]) -> Plan:
    products = tuple(_product(partition, sizes, table, split) for table in tables)
    everyone = everyone or any(product.right.restricted for product in products)
    plan = Plan(partition, sizes, computing, products, everyone, element, 1)
    ordered = {left for left, rights in _by_left(products).items() if _is_ordered(plan, left, rights)}
    return Plan(partition, sizes, computing,
                tuple(Product(product.left, product.right, product.left in ordered) for product in products),
                everyone, element, 1)


def _product(partition: Partition, sizes: Mapping[str, int], table: Clique, split: frozenset[int]) -> Product:
    columns: dict[int, list[str]] = {}
    for name in table:
        columns.setdefault(partition.columns[name], []).append(name)
    restricted = partition.population == "intersection" and len(columns) < len(partition.owners)

    def width(part: Part) -> int:
        return prod(sizes[name] for name in part.columns)

    parts = [Part(owner, tuple(columns[owner])) for owner in partition.owners if owner in columns]
    if len(parts) == 1:
        (whole,) = parts
        if whole.owner in split and len(whole.columns) > 1:
            least = min(whole.columns, key=lambda name: sizes[name])
            rest = tuple(name for name in whole.columns if name != least)
            return Product(Part(whole.owner, rest), Factor((Part(whole.owner, (least,)),), True), False)
        return Product(whole, Factor((), True), False)
    widest = max(parts, key=width)
    left = widest if len(parts) > 2 or len(widest.columns) > 1 or width(widest) > WIDE else parts[0]
    rights = sorted((part for part in parts if part != left), key=lambda part: (width(part), part))
    return Product(left, Factor(tuple(rights), restricted), False)


def _by_left(products: Sequence[Product]) -> dict[Part, list[Factor]]:
    rights: dict[Part, list[Factor]] = {}
    for product in products:
        rights.setdefault(product.left, []).append(product.right)
    return rights


def _is_ordered(plan: Plan, left: Part, rights: Sequence[Factor]) -> bool:
    """Whether an order of the rows is less than one-hot columns; these are there already if they are some table's right."""
    as_right = any(left in product.right.parts for product in plan.products)
    rows, columns = plan.partition.rows, sum(map(plan.breadth, rights))
    element = 0 if as_right else plan.element * (1 if left.owner < plan.computing else 2)
    one_hot = rows * plan.width(left) * (columns // 64 + element)
    return _order_cost(plan, left, rights) < one_hot


def _wave(plan: Plan) -> int:
    """Rows at a time: as many as WAVE bytes hold; more if an order of the rows by many cells would repeat them too often."""
    width = 2 * sum(map(plan.input_width, plan.inputs()))
    width += 3 * sum(plan.breadth(step) for level in plan.levels() for step in level)
    row = max(1, width * plan.element)
    rows = min(max(LEAST_ROWS, WAVE // row), MOST_ROWS_OF_A_WAVE)
    cells = max((plan.width(left) for group in plan.groups(ordered=True) for left in group.lefts), default=0)
    rows = max(rows, min(cells, 4 * WAVE // row))
    count = -(-plan.partition.rows // rows)
    return max(1, -(-plan.partition.rows // max(1, count)))


def subsets(owners: Sequence[int]) -> list[tuple[int, ...]]:
    """All subsets of a few owners, the empty one first."""
    return [subset for count in range(len(owners) + 1) for subset in combinations(owners, count)]
