"""One plan under way at one computing party, block by block of the common table's rows (`plan`, `source`).

Every step is a protocol of `matrices` or `group_by`; this file says in which order they run and adds up this
party's part of every cell, which is reshared ONCE. In the narrow ring the parts of ranges of rows (`Plan.row_ranges`) are
lifted before, many together (`lift`). Threat model and who learns what: `source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mpc_protocols.backends.replicated.sharing.ring import Parts, RingShare, reshare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical import orders
from mpc_protocols.backends.replicated.vertical.group_by import (
    GroupBySum,
    receive_shuffle_seeds,
    sums_by_cell,
)
from mpc_protocols.backends.replicated.vertical.inputs import (
    cut,
    input_blocks,
    receive_blocks,
    receive_streams,
)
from mpc_protocols.backends.replicated.vertical.lift import lifted
from mpc_protocols.backends.replicated.vertical.matrices import (
    Matrix,
    multiply,
    product,
    ring_of,
    side_by_side,
)
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.factors import all_factors, product_of_all
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.tables import Factor, Joint
from mpc_protocols.vertical.union import sum_down

MEMBERSHIP: Clique = ()
LIFTED_AT_ONCE: Final = 1 << 22
"""Bytes of the parts of ranges that wait to be lifted, about."""


class PlanExecution:
    """This party's part of every cell of a row range so far."""

    def __init__(self, trio: Trio, plan: Plan, rows: CodedRows | None) -> None:
        """rows: this party's own, if it owns columns. Receives the contributors' seeds. Blocks."""
        self._trio = trio
        self._plan = plan
        self._rows = rows
        self._dtype: UInt = ring_of(plan.element)
        self._mask_streams = receive_streams(trio, plan.contributing())
        self._shuffle_streams = {owner: receive_shuffle_seeds(trio.wire, owner) for owner in plan.ordering()}
        self._plain, self._by_permutation = (
            plan.groups(by_permutation=False),
            plan.groups(by_permutation=True),
        )
        self._parts = {
            group: np.zeros(plan.shape(group), self._dtype) for group in [*self._plain, *self._by_permutation]
        }
        self._somebody: Elements = np.zeros(1, self._dtype)

    def cells(self) -> RingShare:
        """The cells of all tables, in the plan's order, modulo 2^32; before them R, if the union needs it.

        After the row blocks 1 round, or 2 from the narrow ring.
        """
        ranges = self._plan.row_ranges()
        if self._dtype is not np.uint16:
            return reshare(self._trio, self._of_range(ranges[0]))
        total: Elements | None = None
        waiting: list[Elements] = []
        for left, row_blocks in zip(reversed(range(len(ranges))), ranges, strict=True):
            waiting.append(self._of_range(row_blocks))
            if left == 0 or len(waiting) * waiting[0].nbytes >= LIFTED_AT_ONCE:
                wide = lifted(self._trio, Parts(np.concatenate(waiting))).own
                summed = wide.reshape(len(waiting), -1).sum(axis=0, dtype=np.uint32)
                total = summed if total is None else total + summed
                waiting.clear()
        assert total is not None
        return reshare(self._trio, total)

    def _of_range(self, row_blocks: Sequence[tuple[int, int]]) -> Elements:
        """This party's part of all cells over these row blocks, in the plan's ring."""
        for parts in (self._somebody, *self._parts.values()):
            parts.fill(0)
        for start, stop in row_blocks:
            self._block_rows(start, stop)
        self._add_contributor_sums()
        return np.concatenate(self._cells())

    def _block_rows(self, start: int, stop: int) -> None:
        """Add the rows start .. stop - 1."""
        joints = self._inputs(start, stop)
        factors = all_factors(self._plan, joints, self._memberships(joints), self._multiply)
        for group in self._plain:
            left = side_by_side([joints[part] for part in group.lefts], self._dtype)
            rights = side_by_side([factors[factor] for factor in group.rights], self._dtype)
            self._parts[group] += product(left, rights, self._dtype)
        for batch in orders.batches(self._plan, stop - start):
            sums = [self._group_by_sum(piece, factors, start, stop) for piece in batch]
            for piece, part in zip(batch, sums_by_cell(self._trio, sums, self._dtype), strict=True):
                columns = slice(piece.first, piece.first + piece.layout.columns)
                self._parts[piece.group][:, columns] += part

    def _add_contributor_sums(self) -> None:
        """What contributors have of the sums over their own orders."""
        groups_of = {
            owner: [group for group in self._by_permutation if group.lefts[0].owner == owner]
            for owner in self._mask_streams
            if owner in self._shuffle_streams
        }
        shapes = {
            owner: (sum(self._parts[group].size for group in groups), 1)
            for owner, groups in groups_of.items()
        }
        blocks = receive_blocks(self._trio, self._mask_streams, shapes, self._dtype)
        for owner, groups in groups_of.items():
            sums = blocks[owner].own
            assert sums is not None
            start = 0
            for group in groups:
                size = self._parts[group].size
                self._parts[group] += sums[start : start + size].reshape(self._parts[group].shape)
                start += size

    def _cells(self) -> list[Elements]:
        """This party's parts of the tables, in order: of a product, or sums of its cells."""
        plan = self._plan
        where = {
            pair: parts[place] for group, parts in self._parts.items() for pair, place in plan.places(group)
        }
        cells = []
        for table, source in zip(plan.tables, plan.sources, strict=True):
            product = plan.products[source]
            flat: Elements = where[product.left, product.right].reshape(-1)
            cells.append(sum_down(flat, product.columns, table, plan.sizes))
        return [self._somebody, *cells] if plan.counts_somebody else cells

    def _inputs(self, start: int, stop: int) -> dict[Joint, Matrix]:
        """Everybody's one-hot columns of these rows. 1 round, 2 with owners that do not compute."""
        plan, trio, own = self._plan, self._trio, None
        shapes = {owner: (stop - start, plan.input_width(owner)) for owner in plan.inputs()}
        if trio.me in shapes:
            assert self._rows is not None
            own = self._rows.one_hot(start, stop, plan.joints(trio.me), self._dtype)
        joints: dict[Joint, Matrix] = {}
        for owner, matrix in input_blocks(trio, self._mask_streams, shapes, own, self._dtype).items():
            parts = [Joint(owner, joint) for joint in plan.joints(owner)]
            joints |= zip(parts, cut(matrix, list(map(plan.width, parts))), strict=True)
        return joints

    def _memberships(self, joints: dict[Joint, Matrix]) -> Matrix | None:
        """The product of all memberships; the union counts the rows that nobody holds: the product of their
        complements."""
        plan = self._plan
        if not plan.needs_memberships:
            return None
        members = [joints[Joint(owner, MEMBERSHIP)] for owner in plan.partition.owners]
        if plan.counts_somebody:
            members = [_complement(self._trio, member, self._dtype) for member in members]
        whole = product_of_all(members, self._multiply)
        if plan.counts_somebody:
            assert whole.own is not None
            self._somebody -= whole.own.sum(dtype=self._dtype)
            if self._trio.me == 0:
                self._somebody += self._dtype(whole.shape[0])
        return whole

    def _multiply(self, pairs: Sequence[tuple[Matrix, Matrix]]) -> list[Matrix]:
        return multiply(self._trio, pairs, self._dtype)

    def _group_by_sum(
        self, piece: orders.Piece, factors: dict[Factor, Matrix], start: int, stop: int
    ) -> GroupBySum:
        owner = piece.left.owner
        weights = side_by_side([factors[factor] for factor in piece.group.rights], self._dtype)
        cells = None
        if owner == self._trio.me:
            assert self._rows is not None
            cells = self._rows.cells(start, stop, piece.left.columns)
        reader = (
            self._shuffle_streams[owner].readers()[self._trio.me] if owner in self._shuffle_streams else None
        )
        return GroupBySum(
            owner,
            piece.helper,
            piece.layout,
            weights.columns(piece.first, piece.layout.columns),
            cells,
            reader,
        )


def _complement(trio: Trio, matrix: Matrix, dtype: UInt) -> Matrix:
    """1 - x; the 1 goes into component 0, which P0 and P2 hold."""
    zero = np.zeros(matrix.shape, dtype)
    own = zero if matrix.own is None else -matrix.own
    following = zero if matrix.next is None else -matrix.next
    if trio.me == 0:
        own = own + dtype(1)
    elif trio.me == 2:
        following = following + dtype(1)
    return Matrix(matrix.shape, own, following)
