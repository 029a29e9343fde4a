"""Which plan a batch of tables gets: chosen from public sizes, alike at every party and contributor (`plan`
has the terms).

Choices, by an estimate of what travels in all (bytes; a round and local work at 64 bytes a microsecond, on
whatever network):
  - a clique over several owners has as its left the widest joint; only pairs of narrow columns have the first owner's, so that
    all of them are one product of two matrices;
  - a clique within one owner is either wholly left, with w as its right (one order of the rows for each clique), or has its
    narrowest column times w on the right (one secure product for each column, then plain products): per owner, whichever is less
    over all its cliques;
  - left joints of one owner become one, of all their columns, where the tables that these give, of which the wanted ones are
    sums, cost less than an order of the rows for each;
  - a left joint is one-hot or an order of the rows, whichever is less over all its rights;
  - counts over up to LIFTED_ROWS rows are summed modulo 2^16 and lifted, if that is less.
Rows go in row blocks, so that what a party holds of them does not grow with their number.

Public: everything here. A plan depends on the partition, the domain's sizes and the tables asked for, never
on data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from mpc_protocols.backends.replicated.vertical.lift import LIFTED_ROWS
from mpc_protocols.backends.replicated.vertical.plan import Plan, TablePlan, layout_of
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.schedule import Schedule
from mpc_protocols.vertical.tables import Factor, Joint, by_left, cheapest, table_of

BLOCK_BYTES: Final = 1 << 24
"""Bytes of shares of one block of rows at a party, about."""
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 1 << 16
ROUND = 1 << 16
"""What a round counts in the choice of the ring (`latency.LATENCY_BYTES`)."""
_LIFT_BYTES = 18
"""Of a cell and range."""
_ORDER_ROW = 96
"""Bytes that orders of the rows take of a row: places, and places of places."""
_BLOCK_CELLS = 512
"""A left joint for several tables has, with its rights, a cell for so many bytes of a row block, at most."""


def schedule_of(partition: Partition, facts: StudyFacts, computing: int) -> Schedule[Plan]:
    """The schedule of a run of so many computing parties."""
    return Schedule(partition, facts, computing, make_plan)


def make_plan(
    partition: Partition,
    sizes: Mapping[str, int],
    computing: int,
    tables: Sequence[Clique],
    needs_memberships: bool,
) -> Plan:
    """The plan of these tables. needs_memberships: memberships are needed besides (union, the first time)."""
    plans = [_cheapest(partition, sizes, computing, tables, needs_memberships, element) for element in (2, 4)]
    lifts = max(1, -(-partition.rows // LIFTED_ROWS))
    costs = [
        estimate(plan) + (plan.element == 2) * (lifts * _LIFT_BYTES * plan.cells() + ROUND) for plan in plans
    ]
    best = plans[costs.index(min(costs))]
    block = _block_rows(best)
    return replace(best, row_block=block, narrow=max(block, LIFTED_ROWS // block * block))


def estimate(plan: Plan) -> int:
    """Cost of a plan in all, in bytes and work counted as bytes; for comparing plans, `costs` has the exact
    figures."""
    rows, element = plan.partition.rows, plan.element
    total = sum(
        rows * element * plan.input_width(owner) * (1 if owner < plan.computing else 2)
        for owner in plan.inputs()
    )
    total += sum(3 * rows * element * plan.breadth(step) for level in plan.levels() for step in level)
    for group in plan.groups(by_permutation=False):
        total += rows * prod(plan.shape(group)) // 64
    return total + sum(
        _order_cost(plan, left, group.rights)
        for group in plan.groups(by_permutation=True)
        for left in group.lefts
    )


def _order_cost(plan: Plan, left: Joint, rights: Sequence[Factor]) -> int:
    columns = sum(map(plan.breadth, rights))
    layout = layout_of(plan, left, columns, plan.partition.rows)
    once = sum(layout.transfers()) + layout.places * (4 + columns)
    return once if left.owner < plan.computing else 3 * once


def _cheapest(
    partition: Partition,
    sizes: Mapping[str, int],
    computing: int,
    tables: Sequence[Clique],
    needs_memberships: bool,
    element: int,
) -> Plan:
    """Whether an owner's own cliques are split: owner by owner, in order, whichever costs less."""

    def planned(split_owners: frozenset[int]) -> Plan:
        return _plan(partition, sizes, computing, tables, needs_memberships, element, split_owners)

    return cheapest(partition, tables, planned, estimate)


def _plan(
    partition: Partition,
    sizes: Mapping[str, int],
    computing: int,
    tables: Sequence[Clique],
    needs_memberships: bool,
    element: int,
    split_owners: frozenset[int],
) -> Plan:
    made = tuple(table_of(partition, sizes, table, split_owners) for table in tables)
    needs_memberships = needs_memberships or any(table.right.restricted for table in made)
    wanted = tuple(TablePlan(table.left, table.right, False) for table in made)
    plan = Plan(partition, sizes, wanted, needs_memberships, computing, tuple(tables), (), element, 1)
    right_parts = {part for product in wanted for part in product.right.parts}
    wider = _wider_lefts(plan, right_parts)
    products = [TablePlan(wider.get(product.left, product.left), product.right, False) for product in wanted]
    permuted = {
        left
        for left, rights in by_left(products).items()
        if _by_permutation_is_cheaper(plan, left, rights, left in right_parts)
    }
    products = [TablePlan(product.left, product.right, product.left in permuted) for product in products]
    places = {product: place for place, product in enumerate(dict.fromkeys(products))}
    sources = tuple(places[product] for product in products)
    return replace(plan, products=tuple(places), sources=sources)


@dataclass
class _Bin:
    """Left joints of one owner as one, with all their rights. cost: of its tables, in the terms of
    `estimate`."""

    lefts: list[Joint]
    joint: Joint
    rights: tuple[Factor, ...]
    cost: int


def _wider_lefts(plan: Plan, right_parts: Collection[Joint]) -> dict[Joint, Joint]:
    """For left joints that become one with others, that one: each joins the others with which it adds least,
    if that is less than what it costs alone."""
    bins: dict[int, list[_Bin]] = {}
    found = by_left(plan.products)
    for left in sorted(found, key=lambda left: (-plan.width(left), left)):
        rights = tuple(dict.fromkeys(found[left]))
        if any(part.owner == left.owner for right in rights for part in right.parts):
            continue  # the owner's own columns stand on both sides
        alone = _Bin([left], left, rights, _left_cost(plan, left, rights, right_parts))
        others = bins.setdefault(left.owner, [])
        best, least = None, alone.cost
        for place, other in enumerate(others):
            together = _together(plan, other, alone, right_parts)
            if together is not None and together.cost - other.cost < least:
                best, least = (place, together), together.cost - other.cost
        if best is None:
            others.append(alone)
        else:
            others[best[0]] = best[1]
    return {left: each.joint for of in bins.values() for each in of for left in each.lefts}


def _together(plan: Plan, one: _Bin, other: _Bin, right_parts: Collection[Joint]) -> _Bin | None:
    """Both as one, unless its cells are too many to be held or to pay."""
    columns = {*one.joint.columns, *other.joint.columns}
    joint = Joint(one.joint.owner, tuple(name for name in plan.partition.columns if name in columns))
    rights = tuple(dict.fromkeys((*one.rights, *other.rights)))
    if plan.width(joint) * sum(map(plan.breadth, rights)) > min(
        BLOCK_BYTES // _BLOCK_CELLS, plan.partition.rows
    ):
        return None
    return _Bin([*one.lefts, *other.lefts], joint, rights, _left_cost(plan, joint, rights, right_parts))


def _left_cost(plan: Plan, left: Joint, rights: Sequence[Factor], right_parts: Collection[Joint]) -> int:
    """What a left joint costs with its rights. A contributor's own part of the sums over its order travels
    twice."""
    as_right = left in right_parts
    if not _by_permutation_is_cheaper(plan, left, rights, as_right):
        return _one_hot_cost(plan, left, rights, as_right)
    dealt = plan.width(left) * sum(map(plan.breadth, rights)) if left.owner >= plan.computing else 0
    return _order_cost(plan, left, rights) + 2 * plan.element * dealt


def _by_permutation_is_cheaper(plan: Plan, left: Joint, rights: Sequence[Factor], as_right: bool) -> bool:
    return _order_cost(plan, left, rights) < _one_hot_cost(plan, left, rights, as_right)


def _one_hot_cost(plan: Plan, left: Joint, rights: Sequence[Factor], as_right: bool) -> int:
    """What one-hot columns of a left joint cost, which are there already if they are some table's right."""
    rows, columns = plan.partition.rows, sum(map(plan.breadth, rights))
    element = 0 if as_right else plan.element * (1 if left.owner < plan.computing else 2)
    return rows * plan.width(left) * (columns // 64 + element)


def _block_rows(plan: Plan) -> int:
    """Rows at a time: as many as BLOCK_BYTES hold; more if an order of the rows by many cells would repeat
    them too often."""
    width = 2 * sum(map(plan.input_width, plan.inputs()))
    width += 3 * sum(plan.breadth(step) for level in plan.levels() for step in level)
    row = max(1, width * plan.element + (_ORDER_ROW if plan.groups(by_permutation=True) else 0))
    rows = min(max(MIN_BLOCK_ROWS, BLOCK_BYTES // row), MAX_BLOCK_ROWS)
    cells = max(
        (plan.width(left) for group in plan.groups(by_permutation=True) for left in group.lefts), default=0
    )
    rows = max(rows, min(cells, 4 * BLOCK_BYTES // row))
    if plan.element == 2:
        rows = min(rows, LIFTED_ROWS)
    return max(1, -(-plan.partition.rows // max(1, -(-plan.partition.rows // rows))))
