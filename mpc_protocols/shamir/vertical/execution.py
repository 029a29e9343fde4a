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

from mpc_protocols.shamir.sharing.field import threshold_of
from mpc_protocols.shamir.vertical.dealer import Dealer, Shares, evaluators
from mpc_protocols.shamir.vertical.plan import TablesPlan
from mpc_protocols.shamir.vertical.prime import PRIME, Residues, combination, lagrange, product, rowwise
from mpc_protocols.vertical.factors import all_factors, product_of_all
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.tables import Group, Joint
from mpc_protocols.wire import Wire


class PlanExecution:
    """This party's part of every cell of a range of rows."""

    def __init__(
        self, wire: Wire, plan: TablesPlan, rows: CodedRows | None, dealer: Dealer, shares: Shares
    ) -> None:
        """rows: this party's own, if it owns columns."""
        self._me, self._plan, self._rows = wire.me, plan, rows
        self._dealer, self._shares = dealer, shares
        self._evaluators = evaluators(threshold_of(wire.computing))
        points = [party + 1 for party in self._evaluators]
        self._weight = lagrange(points, 0)[wire.me] if wire.me in self._evaluators else 0
        """lambda_me"""

    def parts(self, row_blocks: Sequence[tuple[int, int]]) -> Residues | None:
        """This evaluator's parts of the cells over these blocks, in the plan's order; before them of R, if the union needs it.

        None at a party that evaluates nothing.
        """
        plan = self._plan
        parts = {group: np.zeros(plan.shape(group), np.uint16) for group in plan.groups}
        somebody = np.zeros(1, np.uint16)
        for start, stop in row_blocks:
            joints = self._inputs(start, stop)
            if joints is None:
                continue
            nobody = self._memberships(joints)
            factors = all_factors(self._plan, joints, nobody, self._multiply)
            for group in plan.groups:
                left = np.concatenate([joints[part] for part in group.lefts], axis=1)
                right = np.concatenate([factors[factor] for factor in group.rights], axis=1)
                parts[group] = combination([1, 1], [parts[group], product(left, right)])
            if plan.counts_somebody:
                assert nobody is not None
                counted = (stop - start - int(nobody.sum(dtype=np.int64))) % PRIME
                somebody = combination([1, 1], [somebody, np.array([counted], np.uint16)])
        if self._me not in self._evaluators:
            return None
        cells = self._cells(parts)
        return combination([self._weight], [np.concatenate([somebody, *cells][not plan.counts_somebody :])])

    def _inputs(self, start: int, stop: int) -> dict[Joint, Residues] | None:
        """Shares of everybody's columns of these rows. 1 round."""
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

    def _memberships(self, joints: dict[Joint, Residues]) -> Residues | None:
        """The product of all memberships; where the union counts the rows that nobody holds, of their complements."""
        plan = self._plan
        if not plan.needs_memberships:
            return None
        members = [joints[Joint(owner, ())] for owner in plan.partition.owners]
        if plan.counts_somebody:
            one = np.ones_like(members[0])
            members = [combination([1, PRIME - 1], [one, member]) for member in members]
        return product_of_all(members, self._multiply)

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

    def _cells(self, parts: dict[Group, Residues]) -> list[Residues]:
        """The groups' parts in the order of the products."""
        plan, where = self._plan, {}
        for group, of in parts.items():
            top = 0
            for left in group.lefts:
                bottom, first = top + plan.width(left), 0
                for right in group.rights:
                    end = first + plan.breadth(right)
                    where[left, right] = of[top:bottom, first:end]
                    first = end
                top = bottom
        return [where[of.left, of.right].reshape(-1) for of in plan.products]
