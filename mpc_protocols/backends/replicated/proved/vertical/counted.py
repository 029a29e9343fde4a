"""What `source.ProvedVerticalMarginals` sends, from public sizes: the same messages in the same order, no
shares.

The additions in bits are the ones of the run, on blank numbers (`proved.counted`); the tests hold the rest
against the wire's counters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.numbers import SummedNumbers
from mpc_protocols.backends.replicated.proved.vertical.columns import KeptColumns, OwnerInput
from mpc_protocols.backends.replicated.proved.vertical.lift import lift
from mpc_protocols.backends.replicated.proved.vertical.planner import (
    ELEMENT,
    PLANES,
    columns_of,
    factor_products,
    products_of,
    schedule_of,
)
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.tables import Joint

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.proved.counted import CountedGates, CountedTrio


class CountedVertical:
    """The sharing of a vertical study's marginals."""

    def __init__(self, gates: CountedGates, trio: CountedTrio, split: Partition, facts: StudyFacts) -> None:
        self._gates, self._trio = gates, trio
        self._schedule, self._columns = schedule_of(split, facts, 3), KeptColumns()
        self.multiplied = 0
        """Products of entries, modulo 2^16."""
        self.proved_rows = 0
        """Of all products of matrices together."""

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> int:
        """Count the messages for these cliques; returns their cells. Raises `StudyInvalid` for tables that
        are too wide."""
        self._schedule.declare(levels)
        plan = self._schedule.next(cliques).plan
        if plan is not None:
            self._run(plan)
        return sum(map(self._schedule.facts.cells, cliques))

    def _run(self, plan: Plan) -> None:
        tally, owners, inputs = self._trio.tally, plan.contributing(), self._columns.next(plan)
        for owner in owners:
            tally.step([(owner, party, DIGEST_BYTES) for party in range(3)])
            tally.step([(owner, (owner + place) % 3, SEED_BYTES * (1 + (place == 0))) for place in range(3)])
        self._compare([(owner, 0, place) for owner in owners for place in (1, 2)])
        for row_range in plan.row_ranges():
            for start, stop in row_range:
                self._block(plan, inputs, stop - start)
            shapes = [plan.shape(group) for group in products_of(plan)]
            rows = row_range[-1][1] - row_range[0][0] if row_range else 0
            self._trio.all_send([(2, ELEMENT * sum(a * b for a, b in shapes))])
            for shape in shapes:
                self._multiply(rows, rows * shape[0] * shape[1])
            self._gates.verify()
            self._trio.send(
                [transfer for owner, of in inputs.items() if of.fresh for transfer in _conditions(owner)]
            )
            self._lift(plan.cells() + plan.counts_somebody)

    def _block(self, plan: Plan, inputs: Mapping[int, OwnerInput], rows: int) -> None:
        sizes = {
            owner: rows * sum(plan.width(Joint(owner, joint)) for joint in of.fresh)
            for owner, of in inputs.items()
            if of.fresh
        }
        contributing = [owner for owner in sizes if owner >= 3]
        self._trio.send(
            [(owner, (owner + 1) % 3, ELEMENT * size) for owner, size in sizes.items() if owner < 3]
        )
        for owner in contributing:
            self._trio.tally.step([(owner, (owner + place) % 3, ELEMENT * sizes[owner]) for place in (1, 2)])
        self._compare([(owner, 1, 2) for owner in contributing])
        for owner, size in sizes.items():
            summed = rows * inputs[owner].sums_to_membership
            if owner < 3:
                for entries in filter(None, (size, summed)):
                    self._gates.note_of_one(owner, PLANES * words_for(entries))
            else:
                add_up(self._gates, SummedNumbers.of(_zeros(size + summed)))
        members = len(plan.partition.owners) if plan.needs_memberships else 1
        while members > 1:
            self._products([rows] * (members // 2), rows)
            members -= members // 2
        for products in factor_products(plan):
            widths = [columns_of(plan, x) * sum(columns_of(plan, y) for y in ys) for x, ys in products]
            self._products([rows * width for width in widths], rows)

    def _products(self, sizes: Sequence[int], rows: int) -> None:
        self._trio.all_send([(2, ELEMENT * sum(sizes))])
        for size in sizes:
            self._multiply(rows, size)

    def _multiply(self, rows: int, products: int) -> None:
        """A product of matrices, summed over these rows or not."""
        self._gates.note_matrices(rows)
        self.proved_rows += rows
        self.multiplied += products

    def _lift(self, cells: int) -> None:
        """`lift.lift`."""
        lift(self._gates, RingShare(*(blank(cells, np.uint16) for _ in range(2))))

    def _compare(self, holders: Sequence[tuple[int, int, int]]) -> None:
        """`copies.same_copies`: a contributor and the places of the two parties that hold the same of it."""
        pairs = [((owner + one) % 3, (owner + other) % 3) for owner, one, other in holders]
        self._trio.send(
            [transfer for a, b in pairs for transfer in ((a, b, DIGEST_BYTES), (b, a, DIGEST_BYTES))]
        )


def _conditions(owner: int) -> list[tuple[int, int, int]]:
    """`conditions.compare`."""
    if owner >= 3:
        return [(party, (party - 1) % 3, DIGEST_BYTES) for party in range(3)]
    left, right = (owner - 1) % 3, (owner + 1) % 3
    return [(left, right, DIGEST_BYTES), (right, left, DIGEST_BYTES)]


def _zeros(size: int) -> RingShare:
    return RingShare(blank(size, np.uint16), blank(size, np.uint16))
