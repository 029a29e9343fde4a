"""Exchanges judged by looking up each target's cells: for targets of any number of columns, of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique

Codes = NDArray[np.int32]
Index = NDArray[np.intp]


class CellTargets:
    """The targets' cells in one numbering, the surplus of the table in each, and what one row more or less would cost there."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        cliques: Mapping[Clique, Array],
        values: Codes,
    ) -> None:
        """cliques: with the model's answer of each, flat. values: codes, (rows, columns)."""
        column = {name: index for index, name in enumerate(sizes)}
        self.strides = np.zeros((len(cliques), len(sizes)))
        self.first_cells = np.zeros((len(cliques), 1))
        rows, cells = len(values), 0
        surplus = []
        for k, (clique, answer) in enumerate(cliques.items()):
            stride = 1
            codes = np.zeros(rows, dtype=np.int32)
            for name in reversed(clique):
                self.strides[k, column[name]] = stride
                codes += values[:, column[name]] * np.int32(stride)
                stride *= sizes[name]
            self.first_cells[k] = cells
            surplus.append(np.bincount(codes, minlength=stride) - answer * (rows / answer.sum()))
            cells += stride
        self.surplus = np.concatenate(surplus).astype(np.float32)
        self.one_more, self.one_less = (np.empty_like(self.surplus) for _ in range(2))
        self.price(slice(None))

    def price(self, cells: Index | slice) -> None:
        """Say what one row more or less costs in these cells now."""
        surplus = self.surplus[cells]
        size = np.abs(surplus)
        self.one_more[cells] = np.abs(surplus + 1) - size
        self.one_less[cells] = np.abs(surplus - 1) - size

    def across(self, side: Sequence[int]) -> AcrossCells | None:
        """For exchanges of the columns `side` with all others; None if no target has columns of both."""
        inside = np.zeros(self.strides.shape[1])
        inside[side] = 1
        halves = self.strides * inside, self.strides * (1 - inside)
        changed = np.flatnonzero(halves[0].any(axis=1) & halves[1].any(axis=1))
        return AcrossCells(self, changed, halves[0][changed], halves[1][changed]) if len(changed) else None


class AcrossCells:
    """Exchanges of one side's columns."""

    def __init__(self, targets: CellTargets, changed: Index, side: Array, others: Array) -> None:
        """changed: the targets whose counts may change. side, others: their strides of these columns, 0 elsewhere."""
        self._targets, self._first = targets, targets.first_cells[changed]
        self._strides = np.concatenate((side, others))
        self._pair_of = np.empty(0, dtype=np.intp)

    def costs(self, of_a: Codes, of_b: Codes) -> NDArray[np.float64]:
        """What exchanging between each two rows would add to the distance. of_a, of_b: their columns, (pairs, columns).

        Many exchanges leave a marginal as it is (two thirds on Adult), so only the cells that change are looked up.
        """
        targets, pairs, changed = self._targets, len(of_a), len(self._first)
        codes = [
            self._strides @ of.T.astype(np.float64) for of in (of_a, of_b)
        ]  # exact: cells are below 2^53
        (side_a, others_a), (side_b, others_b) = (np.split(of, [changed]) for of in codes)
        moved = np.flatnonzero((side_a != side_b) & (others_a != others_b))
        if len(self._pair_of) != changed * pairs:
            self._pair_of = np.tile(np.arange(pairs), changed)
        self._pair, self._pairs = self._pair_of.take(moved), pairs
        others_a += self._first
        others_b += self._first
        from_a, by_a, from_b, by_b = (
            of.reshape(-1).take(moved).astype(np.intp) for of in (side_a, others_a, side_b, others_b)
        )
        self._left = from_a + by_a, from_b + by_b
        self._entered = from_b + by_a, from_a + by_b
        cost = targets.one_less.take(self._left[0])
        cost += targets.one_less.take(self._left[1])
        cost += targets.one_more.take(self._entered[0])
        cost += targets.one_more.take(self._entered[1])
        return np.bincount(self._pair, cost, pairs).astype(np.float64, copy=False)

    def exchanged(self, good: Index) -> None:
        """These of the pairs last judged have exchanged their columns."""
        chosen = np.zeros(self._pairs, dtype=bool)
        chosen[good] = True
        made = np.flatnonzero(chosen.take(self._pair))
        for cells, step in ((self._left, -1), (self._entered, 1)):
            moved = np.concatenate([of.take(made) for of in cells])
            np.add.at(self._targets.surplus, moved, np.float32(step))
            self._targets.price(moved)

    def close(self) -> None:
        """Nothing is kept apart from the targets."""
