"""The tables of a plan over blocks of the common table's rows, whatever the shares of a column are (M): the
order of the work.

    inputs        every owner's one-hot columns and membership
    memberships   the product of all; the union counts the rows that nobody holds: the product of their complements
    factors       products row by row, a round a level (`factors`)
    products      LEFT^T RIGHT of each group, added up over all blocks

A backend says what of these its shares take. Who learns what: as of its protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.vertical.block_plan import BlockPlan
from mpc_protocols.vertical.factors import all_factors, product_of_all
from mpc_protocols.vertical.tables import Joint

M = TypeVar("M")
"""A party's shares of some columns of a block of rows."""


class BlockSums(ABC, Generic[M]):
    """One party's parts of every cell of a plan's tables. dtype: of a part."""

    def __init__(self, plan: BlockPlan, dtype: UInt) -> None:
        self._plan, self._dtype = plan, dtype

    def parts(self, row_blocks: Sequence[tuple[int, int]]) -> Elements:
        """This party's parts of the cells over these blocks, in the plan's order; before them of R, if the
        union needs it."""
        plan = self._plan
        parts: dict[object, Elements] = {
            group: np.zeros(plan.shape(group), self._dtype) for group in plan.groups
        }
        somebody: Elements = np.zeros(1, self._dtype)
        for start, stop in row_blocks:
            joints = self._inputs(start, stop)
            if joints is None:
                continue
            members = self._memberships(joints)
            factors = all_factors(plan, joints, members, self._multiply)
            for group in plan.groups:
                product = self._product(
                    [joints[part] for part in group.lefts],
                    [factors[factor] for factor in group.rights],
                    stop - start,
                )
                parts[group] = self._sum(parts[group], product)
            if plan.counts_somebody:
                assert members is not None
                somebody = self._sum(somebody, self._held_rows(members, stop - start))
        where = {pair: parts[group][place] for group in plan.groups for pair, place in plan.places(group)}
        cells = [where[of.left, of.right].reshape(-1) for of in plan.products]
        return np.concatenate([somebody, *cells][not plan.counts_somebody :])

    def _memberships(self, joints: dict[Joint, M]) -> M | None:
        plan = self._plan
        if not plan.needs_memberships:
            return None
        members = [joints[Joint(owner, ())] for owner in plan.partition.owners]
        if plan.counts_somebody:
            members = [self._complement(member) for member in members]
        return product_of_all(members, self._multiply)

    @abstractmethod
    def _inputs(self, start: int, stop: int) -> dict[Joint, M] | None:
        """Everybody's columns of these rows; None at a party that has shares of none."""

    @abstractmethod
    def _complement(self, member: M) -> M:
        """1 - x. Local."""

    @abstractmethod
    def _multiply(self, pairs: Sequence[tuple[M, M]]) -> list[M]:
        """Row by row all products of a column of one with a column of the other. 1 round."""

    @abstractmethod
    def _product(self, lefts: Sequence[M], rights: Sequence[M], rows: int) -> Elements:
        """This party's part of the products of all columns of `lefts` with all of `rights`, summed over the
        rows: (columns of lefts, columns of rights)."""

    @abstractmethod
    def _held_rows(self, nobody: M, rows: int) -> Elements:
        """This party's part of how many of so many rows are held by somebody, (1,). nobody: 1 in all others."""

    def _sum(self, mine: Elements, more: Elements) -> Elements:
        """Of two parts. Local."""
        return mine + more
