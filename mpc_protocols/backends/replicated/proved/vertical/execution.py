"""One range of rows of a plan at one computing party, all of it proved before anything depends on it that is
opened.

    inputs        owners' one-hot columns, block by block, with all that must hold of them (`inputs`)
    factors       products row by row, and the products of matrices over all blocks, noted (`proof.matrix_products`)
    proof         of all of it; then the hashes are compared
    lift          the cells that were asked for, from 2^16 to 2^32 (`lift`)

What a range of fewer than 2^16 rows takes is kept until it is proved, so memory does not grow with the table.
Threat model and who learns what: `source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mpc_protocols.backends.replicated.proof.matrix_products.multiplication import (
    ProductSum,
    multiply_rows,
    reshare_sums,
)
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.vertical.columns import MEMBERSHIP, OwnerInput
from mpc_protocols.backends.replicated.proved.vertical.inputs import Kept, RangeInputs
from mpc_protocols.backends.replicated.proved.vertical.lift import lift
from mpc_protocols.backends.replicated.proved.vertical.planner import factor_products, products_of, step_of
from mpc_protocols.backends.replicated.sharing.ring import RingShare, concatenate
from mpc_protocols.backends.replicated.vertical.matrices import MaskStreams, ring_of
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.vertical.factors import product_of_all
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.tables import Factor, Joint
from mpc_protocols.vertical.union import sum_down


class RangeExecution:
    """The tables over one range of rows."""

    def __init__(
        self,
        gates: ProvedGates,
        plan: Plan,
        rows: CodedRows | None,
        streams: Mapping[int, MaskStreams],
        inputs: Mapping[int, OwnerInput],
        kept: Kept,
    ) -> None:
        """rows: this party's own, if it owns columns. streams: of contributors. inputs: of all owners. kept:
        of earlier plans; takes what is to be kept of this one."""
        self._gates, self._trio, self._plan = gates, gates.trio, plan
        self._inputs = RangeInputs(gates, plan, rows, streams, inputs, kept)
        self._dtype = ring_of(plan.element)
        self._groups = products_of(plan)
        self._sums = [ProductSum(plan.shape(group)) for group in self._groups]
        self._somebody = RingShare(np.zeros(1, self._dtype), np.zeros(1, self._dtype))

    def cells(self, row_blocks: Sequence[tuple[int, int]]) -> RingShare:
        """The cells of all tables over these blocks, in the plan's order, modulo 2^32; before them R, if the
        union needs it.

        Raises `ProtocolAborted`.
        """
        for start, stop in row_blocks:
            self._block(start, stop)
        shared = reshare_sums(self._trio, self._gates.transcript, self._sums)
        self._gates.verify()
        self._inputs.finish()
        cells = self._cells(shared)
        return lift(
            self._gates, concatenate([self._somebody, *cells] if self._plan.counts_somebody else cells)
        )

    def _block(self, start: int, stop: int) -> None:
        joints: dict[Factor | Joint, RingShare] = {}
        for part, share in self._inputs.block(start, stop).items():
            joints[part] = joints[Factor((part,), False)] = share
        factors = self._factors(joints)
        for group, total in zip(self._groups, self._sums, strict=True):
            total.add(
                _side_by_side([factors[left] for left in group.lefts]),
                _side_by_side([factors[right] for right in group.rights]),
            )

    def _factors(self, joints: dict[Factor | Joint, RingShare]) -> dict[Factor | Joint, RingShare]:
        """Every factor of a block, and the joints. A round a level, and those of the memberships' product."""
        plan, found = self._plan, dict(joints)
        if plan.needs_memberships:
            found[Factor((), True)] = self._memberships(joints)
        for products in factor_products(plan):
            made = self._multiply([(found[x], _side_by_side([found[y] for y in ys])) for x, ys in products])
            for (x, ys), product in zip(products, made, strict=True):
                first, breadth = 0, found[x].own.shape[1]
                rows = len(product)
                by_x = product.reshape(rows, breadth, -1)
                for y in ys:
                    width = found[y].own.shape[1]
                    where = (slice(None), slice(None), slice(first, first + width))
                    found[step_of(x, y)] = by_x[where].reshape(rows, breadth * width)
                    first += width
        return found

    def _memberships(self, joints: Mapping[Factor | Joint, RingShare]) -> RingShare:
        """The product of all memberships; the union counts the rows that nobody holds: the product of their
        complements."""
        members = [joints[Joint(owner, MEMBERSHIP)] for owner in self._plan.partition.owners]
        if self._plan.counts_somebody:
            members = [self._complement(member) for member in members]
        whole = product_of_all(members, self._multiply)
        if self._plan.counts_somebody:
            nobody = RingShare(*(part.sum(axis=0, dtype=self._dtype) for part in (whole.own, whole.next)))
            everybody = RingShare(*(np.full(1, len(whole), self._dtype) * f for f in self._public_one()))
            self._somebody = self._somebody + everybody - nobody
        return whole

    def _complement(self, member: RingShare) -> RingShare:
        own, following = self._public_one()
        return RingShare(own - member.own, following - member.next)

    def _public_one(self) -> tuple[Elements, Elements]:
        """This party's components of a public 1, which is component 0."""
        return tuple(self._dtype(holder == 0) for holder in (self._trio.me, self._trio.right))  # type: ignore[return-value]

    def _multiply(self, pairs: Sequence[tuple[RingShare, RingShare]]) -> list[RingShare]:
        return multiply_rows(self._trio, self._gates.transcript, pairs)

    def _cells(self, shared: Sequence[RingShare]) -> list[RingShare]:
        """The tables that were asked for, flat and in order."""
        plan = self._plan
        where = {
            pair: product[place].reshape(-1)
            for group, product in zip(self._groups, shared, strict=True)
            for pair, place in plan.places(group)
        }
        cells = []
        for table, source in zip(plan.tables, plan.sources, strict=True):
            product = plan.products[source]
            flat = where[product.left, product.right]
            cells.append(
                RingShare(
                    *(sum_down(part, product.columns, table, plan.sizes) for part in (flat.own, flat.next))
                )
            )
        return cells


def _side_by_side(shares: Sequence[RingShare]) -> RingShare:
    if len(shares) == 1:
        return shares[0]
    return RingShare(
        np.concatenate([share.own for share in shares], axis=1),
        np.concatenate([share.next for share in shares], axis=1),
    )
