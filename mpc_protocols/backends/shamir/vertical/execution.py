"""One plan under way at one computing party, block by block of the common table's rows (`plan`).

    input        every owner deals its one-hot columns and membership (`dealer`)                       1 round
    products     row by row: x_i y_i times lambda_i is a part of xy among the evaluators, and each deals its part; the sum of
                 what they dealt is a share of degree t again (Gennaro, Rabin, Rabin 1998)              1 round a level
    tables       A_i^T B_i on shares, lambda_i times it a part of the table: no message however many rows
    range        after fewer than p rows the parts become counts among the holders (`counts`)

Threat model and who learns what: `source`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.vertical.dealer import Dealer, Shares, evaluators
from mpc_protocols.backends.shamir.vertical.prime import (
    PRIME,
    Residues,
    combination,
    lagrange,
    product,
    rowwise,
)
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.vertical.block_plan import BlockPlan
from mpc_protocols.vertical.block_sums import BlockSums
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.tables import Joint
from mpc_protocols.wire import Wire


class PlanExecution(BlockSums[Residues]):
    """This evaluator's part of every cell of a range of rows; zeros at a party that evaluates nothing."""

    def __init__(
        self, wire: Wire, plan: BlockPlan, rows: CodedRows | None, dealer: Dealer, shares: Shares
    ) -> None:
        """rows: this party's own, if it owns columns."""
        super().__init__(plan, np.uint16)
        self._me, self._rows = wire.me, rows
        self._dealer, self._shares = dealer, shares
        self._evaluators = evaluators(threshold_of(wire.computing))
        points = [party + 1 for party in self._evaluators]
        self._weight = lagrange(points, 0)[wire.me] if wire.me in self._evaluators else 0
        """lambda_me"""

    def parts(self, row_blocks: Sequence[tuple[int, int]]) -> Residues:
        return combination([self._weight], [super().parts(row_blocks)])

    def _inputs(self, start: int, stop: int) -> dict[Joint, Residues] | None:
        """1 round."""
        plan, own = self._plan, None
        if self._me in plan.inputs():
            assert self._rows is not None
            own = self._dealer.deal(self._rows.one_hot(start, stop, plan.joints(self._me), np.uint16))
        if self._me not in self._evaluators:
            return None
        joints = {}
        for owner in plan.inputs():
            matrix = own if owner == self._me else self._dealt(owner, stop - start)
            assert matrix is not None
            first = 0
            for joint in plan.joints(owner):
                part = Joint(owner, joint)
                joints[part] = matrix[:, first : first + plan.width(part)]
                first += plan.width(part)
        return joints

    def _dealt(self, owner: int, rows: int) -> Residues:
        return self._shares.receive(owner, (rows, self._plan.input_width(owner)))

    def _complement(self, member: Residues) -> Residues:
        return combination([1, PRIME - 1], [np.ones_like(member), member])

    def _multiply(self, pairs: Sequence[tuple[Residues, Residues]]) -> list[Residues]:
        """Row-wise products of shares, of degree t again. 1 round."""
        products = [rowwise(a, b) for a, b in pairs]
        part = combination([self._weight], [np.concatenate(products, axis=1)])
        own = self._dealer.deal(part)
        assert own is not None
        dealt = [
            own if party == self._me else self._shares.receive(party, (len(part), part.shape[1]))
            for party in self._evaluators
        ]
        share = combination([1] * len(dealt), dealt)
        ends = np.cumsum([of.shape[1] for of in products])
        return np.split(share, ends[:-1], axis=1)

    def _product(self, lefts: Sequence[Residues], rights: Sequence[Residues], rows: int) -> Residues:
        return product(np.concatenate(lefts, axis=1), np.concatenate(rights, axis=1))

    def _held_rows(self, nobody: Residues, rows: int) -> Residues:
        return np.array([(rows - int(nobody.sum(dtype=np.int64))) % PRIME], np.uint16)

    def _sum(self, mine: Elements, more: Elements) -> Residues:
        return combination([1, 1], [mine, more])
