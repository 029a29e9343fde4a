"""Which tables over two owners' columns are computed, and how: public, alike at every party
(`docs/design/additive.md` 5).

A clique has a joint at each owner (of no columns: one category, the membership). Wanted is T = X^T Y of two
one-hot matrices, of which each owner has one. Two ways:

    product    both send all columns of their matrix under a mask (`tables`)             columns, each once for all tables
    order      the rows are summed by one owner's joint through a shuffle of the rows    an index, and the other owner's columns

A joint as wide as its columns are dear is an order, if that is less traffic. Columns of a joint are sums of
those of a joint that contains it, and are not sent. Rows are counted modulo 2^16 in stretches of fewer than
2^16, whose counts are then lifted; few rows with many cells are counted modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Final

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.partition import Partition

LIFT_BYTES: Final = 14
"""Bytes of all parties that lifting a cell costs, about."""
STRETCH: Final = (1 << 16) - 1
"""Most rows whose counts fit into 16 bits."""
BLOCK_BYTES: Final = 1 << 26
"""Most bytes of both owners' columns that travel at a time."""
BATCH: Final = 1 << 22
"""Bytes of one party's largest array in a batch of orders, and of a piece of more than one column."""

Table = tuple[Clique, Clique]
"""A joint of the first owner and one of the second."""


@dataclass(frozen=True)
class Order:
    """A joint of the owner `side` (0: the first) by which the rows are summed, and joints of the other one
    that are summed."""

    side: int
    joint: Clique
    weights: tuple[Clique, ...]

    @property
    def tables(self) -> list[Table]:
        """What it gives."""
        return [(self.joint, other) if self.side == 0 else (other, self.joint) for other in self.weights]


@dataclass(frozen=True)
class Piece:
    """Some columns of an order's weights: first .. first + layout.columns - 1."""

    order: Order
    first: int
    layout: Layout


@dataclass(frozen=True)
class TablesPlan:
    """All tables of a request. owners: wire numbers, ascending. columns: the joints of either owner whose
    columns travel.

    products: tables that are products; the others come from `orders`. histograms: joints of an owner (0: the
    first) that it counts alone. ring: of the counts of a stretch.
    """

    owners: tuple[int, int]
    rows: int
    sizes: Mapping[str, int]
    columns: tuple[tuple[Clique, ...], tuple[Clique, ...]]
    products: tuple[Table, ...]
    orders: tuple[Order, ...]
    histograms: tuple[tuple[int, Clique], ...]
    ring: UInt

    @property
    def dealer(self) -> int:
        """The computing party that owns nothing, and deals."""
        return 3 - sum(self.owners)

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.ring).itemsize

    @property
    def tables(self) -> list[Table]:
        """All tables, in the order of their cells."""
        return [*self.products, *(table for order in self.orders for table in order.tables)]

    @cached_property
    def places(self) -> Mapping[Table | tuple[int, Clique], slice]:
        """Where the cells of each table, then of each histogram, stand among all."""
        keys: list[Table | tuple[int, Clique]] = [*self.tables, *self.histograms]
        sizes = [self.width(x) * self.width(y) for x, y in self.tables]
        sizes += [self.width(joint) for _, joint in self.histograms]
        ends = accumulate(sizes, initial=0)
        return {key: slice(*place) for key, place in zip(keys, pairwise(ends), strict=True)}

    @cached_property
    def cells(self) -> int:
        """Of all tables and histograms."""
        return max((place.stop for place in self.places.values()), default=0)

    @property
    def dealt_cells(self) -> int:
        """Of the products, which stand first."""
        return sum(self.width(x) * self.width(y) for x, y in self.products)

    def width(self, joint: Clique) -> int:
        """Cells of a joint."""
        return prod(self.sizes[name] for name in joint)

    def breadth(self, side: int) -> int:
        """Columns that an owner sends."""
        return sum(map(self.width, self.columns[side]))

    def stretches(self) -> Iterator[range]:
        """Rows that are counted before they are lifted."""
        step = STRETCH if self.element == 2 else max(1, self.rows)
        return (range(start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def blocks(self, stretch: range) -> Iterator[range]:
        """Rows of a stretch that travel together."""
        step = max(1, BLOCK_BYTES // (self.element * max(1, self.breadth(0) + self.breadth(1))))
        return (stretch[start : start + step] for start in range(0, len(stretch), step))

    def batches(self, rows: int) -> Iterator[list[Piece]]:
        """The pieces of all orders in a block of so many rows, in batches that share their rounds."""
        batch: list[Piece] = []
        size = 0
        for order in self.orders:
            columns = sum(map(self.width, order.weights))
            cells = self.width(order.joint)
            step = max(1, BATCH // (Layout(rows, cells, columns, self.element).places * self.element))
            for first in range(0, columns, step):
                layout = Layout(rows, cells, min(step, columns - first), self.element)
                grown = layout.places * layout.columns * self.element
                if batch and size + grown > BATCH:
                    yield batch
                    batch, size = [], 0
                batch.append(Piece(order, first, layout))
                size += grown
        if batch:
            yield batch


def check_owners(partition: Partition) -> None:
    """Raises `StudyInvalid` unless the columns belong to two of the three computing parties."""
    if len(partition.owners) != 2 or not set(partition.owners) <= {0, 1, 2}:
        raise StudyInvalid(
            'backend = "additive" joins the columns of two of its three computing parties and of nobody else; choose '
            'backend = "replicated", or let two owners compute.'
        )


def parts_of(partition: Partition, clique: Clique) -> Table:
    """The clique's columns at the first and at the second owner, in the order of the partition."""
    first, second = (
        tuple(name for name, of in partition.columns.items() if of == owner and name in clique)
        for owner in sorted(partition.owners)
    )
    return first, second


def make_plan(partition: Partition, sizes: Mapping[str, int], cliques: Sequence[Clique]) -> TablesPlan:
    """The plan of these cliques. Raises `StudyInvalid` (`check_owners`)."""
    check_owners(partition)
    tables: dict[Table, None] = {}
    histograms: dict[tuple[int, Clique], None] = {}
    union = partition.population == "union"
    for clique in cliques:
        parts = parts_of(partition, clique)
        alone = union and not all(parts)
        tables[((), ()) if alone else parts] = None
        if union:
            histograms |= dict.fromkeys(enumerate(parts))
    owners = min(partition.owners), max(partition.owners)
    orders = _orders(partition.rows, sizes, list(tables))
    ordered = {table for order in orders for table in order.tables}
    products = tuple(table for table in tables if table not in ordered)
    sent = tuple(
        tuple(
            _outer(
                [table[side] for table in products]
                + [joint for order in orders if order.side != side for joint in order.weights]
            )
        )
        for side in (0, 1)
    )
    columns = sent[0], sent[1]
    plan = TablesPlan(owners, partition.rows, sizes, columns, products, orders, tuple(histograms), np.uint16)
    narrow = 2 * min(partition.rows, STRETCH) * (plan.breadth(0) + plan.breadth(1))
    return plan if narrow > LIFT_BYTES * plan.cells else replace(plan, ring=np.uint32)


def source_of(columns: Sequence[Clique], joint: Clique) -> Clique:
    """The first joint whose columns travel that has all of this one's."""
    return next(of for of in columns if set(joint) <= set(of))


def _outer(joints: Sequence[Clique]) -> list[Clique]:
    """Those of the joints that no other one contains, widest sets first."""
    kept: list[Clique] = []
    for joint in sorted(dict.fromkeys(joints), key=lambda of: -len(of)):
        if not any(set(joint) <= set(other) for other in kept):
            kept.append(joint)
    return kept


def _orders(rows: int, sizes: Mapping[str, int], tables: Sequence[Table]) -> tuple[Order, ...]:
    """Joints, widest first, for which an order is less traffic than their columns."""
    partners: dict[tuple[int, Clique], list[Clique]] = {}
    for table in tables:
        for side in (0, 1):
            partners.setdefault((side, table[side]), []).append(table[1 - side])
    width = {joint: prod(sizes[name] for name in joint) for _, joint in partners}
    orders: list[Order] = []
    pinned: set[tuple[int, Clique]] = set()
    """Joints whose columns travel in any case."""
    for side, joint in sorted(partners, key=lambda of: (-width[of[1]], of)):
        rest = [other for other in partners[side, joint] if not _covered(orders, 1 - side, other, joint)]
        contained = any(of == side and set(joint) <= set(outer) for of, outer in pinned)
        if not joint or contained or not rest:
            continue
        layout = Layout(rows, width[joint], sum(width[other] for other in rest), 2)
        if sum(layout.transfers()) < 2 * rows * width[joint]:
            orders.append(Order(side, joint, tuple(rest)))
            pinned |= {(1 - side, other) for other in rest}
        else:
            pinned.add((side, joint))
    return tuple(orders)


def _covered(orders: Sequence[Order], side: int, joint: Clique, other: Clique) -> bool:
    """Whether the table of two joints comes from an order by the first already."""
    return any(order.side == side and order.joint == joint and other in order.weights for order in orders)
