"""What owners input of one range of rows at one computing party, and what must hold of it.

    block      fresh one-hot columns of some rows; entries noted (`entries`), linear conditions hashed (`conditions`)
    finish     once all is proved: the hashes are compared, and what later requests need is kept (`columns`)

Threat model and who learns what: `source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.vertical.columns import MEMBERSHIP, OwnerInput
from mpc_protocols.backends.replicated.proved.vertical.conditions import Conditions, compare
from mpc_protocols.backends.replicated.proved.vertical.entries import prove_entries, upper_bits
from mpc_protocols.backends.replicated.sharing.ring import RingShare, concatenate
from mpc_protocols.backends.replicated.vertical.inputs import cut, input_blocks
from mpc_protocols.backends.replicated.vertical.matrices import MaskStreams, Matrix, ring_of
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.tables import Joint

Kept = dict[tuple[int, Clique, int], Matrix]
"""Joints that serve later requests, by owner, columns and the first row of a range."""


class RangeInputs:
    """All owners' columns of one range of rows."""

    def __init__(
        self,
        gates: ProvedGates,
        plan: Plan,
        rows: CodedRows | None,
        streams: Mapping[int, MaskStreams],
        inputs: Mapping[int, OwnerInput],
        kept: Kept,
    ) -> None:
        """Arguments as of `execution.RangeExecution`."""
        self._gates, self._trio, self._plan, self._rows = gates, gates.trio, plan, rows
        self._streams, self._asked, self._kept = streams, inputs, kept
        self._dtype = ring_of(plan.element)
        self._conditions = {
            owner: Conditions(self._trio, owner, of.fresh, plan.sizes, of.known)
            for owner, of in inputs.items()
            if of.fresh
        }
        self._keeping: dict[tuple[int, Clique], list[Matrix]] = {
            (owner, joint): [] for owner, of in inputs.items() for joint in of.kept
        }
        self._first: int | None = None
        """The first row of the range, once there was one."""

    def block(self, start: int, stop: int) -> dict[Joint, RingShare]:
        """Every joint of the plan, in these rows, which follow those before. Raises `ProtocolAborted`."""
        if self._first is None:
            self._first = start
        matrices, found = self._input(start, stop), {}
        for owner, of in self._asked.items():
            columns = self._columns(owner, of, matrices.get(owner), start, stop)
            for joint in self._plan.joints(owner):
                found[Joint(owner, joint)] = _share(columns[joint], self._dtype)
        return found

    def finish(self) -> None:
        """Compare; keep. What was noted is proved. 1 round. Raises `ProtocolAborted`, which names an owner."""
        compare(self._trio, list(self._conditions.values()))
        for (owner, joint), parts in self._keeping.items():
            if self._first is not None:
                self._kept[owner, joint, self._first] = _stacked(parts)

    def _columns(
        self, owner: int, of: OwnerInput, fresh: Matrix | None, start: int, stop: int
    ) -> dict[Clique, Matrix]:
        """An owner's joints of a block: those of the plan, and those it is compared with. fresh: what it has
        input."""
        columns: dict[Clique, Matrix] = {}
        if fresh is not None:
            columns |= zip(of.fresh, cut(fresh, self._widths(owner, of)), strict=True)
        conditions = self._conditions.get(owner)
        wanted = {*self._plan.joints(owner), *(conditions.compared if conditions else ())}
        assert self._first is not None
        inside = slice(start - self._first, stop - self._first)
        for joint in of.known:
            if joint in wanted:
                columns[joint] = _rows(self._kept[owner, joint, self._first], inside)
        if of.sums_to_membership:
            columns[MEMBERSHIP] = _sum(columns[of.fresh[0]])
        if conditions is not None:
            assert fresh is not None
            conditions.add(columns)
            self._prove(owner, fresh, columns[MEMBERSHIP] if of.sums_to_membership else None, conditions)
        for joint in of.kept:
            self._keeping[owner, joint].append(columns[joint])
        return columns

    def _prove(self, owner: int, entries: Matrix, membership: Matrix | None, conditions: Conditions) -> None:
        """Note that entries are 0 or 1. membership: one that is a sum of entries, and so must be 0 or 1
        itself."""
        matrices = [entries] if membership is None else [entries, membership]
        if owner < 3:
            for matrix in matrices:
                prove_entries(self._gates, owner, matrix)
        else:
            together = concatenate([_share(matrix, self._dtype).reshape(-1) for matrix in matrices])
            conditions.add_zero_bits(*upper_bits(self._gates, together))

    def _input(self, start: int, stop: int) -> dict[int, Matrix]:
        """Everybody's fresh one-hot columns of these rows, side by side. 1 round, 2 with owners that do not
        compute."""
        me, own = self._trio.me, None
        shapes = {
            owner: (stop - start, sum(self._widths(owner, of)))
            for owner, of in self._asked.items()
            if of.fresh
        }
        if me in shapes:
            assert self._rows is not None
            own = self._rows.one_hot(start, stop, self._asked[me].fresh, self._dtype)
        return input_blocks(self._trio, self._streams, shapes, own, self._dtype)

    def _widths(self, owner: int, of: OwnerInput) -> list[int]:
        """Columns of its fresh joints."""
        return [self._plan.width(Joint(owner, joint)) for joint in of.fresh]


def _share(matrix: Matrix, dtype: UInt) -> RingShare:
    return RingShare(
        *(np.zeros(matrix.shape, dtype) if part is None else part for part in (matrix.own, matrix.next))
    )


def _sum(matrix: Matrix) -> Matrix:
    """Of all columns."""
    sums = [
        None if part is None else part.sum(axis=1, dtype=part.dtype, keepdims=True)
        for part in (matrix.own, matrix.next)
    ]
    return Matrix((matrix.shape[0], 1), *sums)


def _rows(matrix: Matrix, rows: slice) -> Matrix:
    parts = [None if part is None else part[rows] for part in (matrix.own, matrix.next)]
    return Matrix((rows.stop - rows.start, matrix.shape[1]), *parts)


def _stacked(matrices: Sequence[Matrix]) -> Matrix:
    """Blocks of rows, one below the other, copied: what is kept of a block does not hold on to the rest of
    it."""
    sides = zip(*((matrix.own, matrix.next) for matrix in matrices), strict=True)
    parts = [None if any(part is None for part in side) else np.concatenate(side) for side in sides]
    return Matrix((sum(matrix.shape[0] for matrix in matrices), matrices[0].shape[1]), *parts)
