"""Exchanges judged by looking up each target's cells: for targets of any number of columns, of any size.

With s the surplus of a cell, one row more adds |s + 1| - |s| to the distance and one row less |s - 1| - |s|:
that is 1 + 2 s and 1 - 2 s, cut off at -1 and 1. Most exchanges leave most marginals as they are, since the
two rows agree on one side of them (five of six on Adult): only cells that change are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique

Codes = NDArray[np.int32]
Index = NDArray[np.intp]
Strides = Sequence[tuple[int, int]]
"""Columns of a target, each with the number of cells from one of its values to the next."""


class CellTargets:
    """The targets' cells in one numbering, and the surplus of the table in each."""

    def __init__(self, sizes: Mapping[str, int], cliques: Mapping[Clique, Array], values: Codes) -> None:
        """cliques: with the model's answer of each, flat. values: codes, (columns, rows)."""
        column = {name: index for index, name in enumerate(sizes)}
        self.strides: list[Strides] = []
        self.first_cells = np.cumsum([0, *(len(answer) for answer in cliques.values())])
        self.surplus = np.empty(self.first_cells[-1], dtype=np.float32)
        rows = values.shape[1]
        for first, (clique, answer) in zip(self.first_cells.tolist(), cliques.items(), strict=False):
            stride, strides = 1, []
            for name in reversed(clique):
                strides.append((column[name], stride))
                stride *= sizes[name]
            self.strides.append(strides)
            part = self.surplus[first : first + stride]
            np.multiply(answer, -rows / answer.sum(), out=part, casting="same_kind")
            part += np.bincount(_coded(values, strides), minlength=stride)

    def across(self, side: Sequence[int]) -> AcrossCells | None:
        """For exchanges of the columns `side` with all others; None if no target has columns of both."""
        of_side, changed = set(side), []
        for place, strides in enumerate(self.strides):
            moved = [each for each in strides if each[0] in of_side]
            rest = [each for each in strides if each[0] not in of_side]
            if moved and rest:
                changed.append((int(self.first_cells[place]), moved, rest))
        return AcrossCells(self, changed) if changed else None


class AcrossCells:
    """Exchanges of one side's columns.

    width: targets whose counts may change. changed: of each of these its first cell, its columns of the side,
    and its other ones. surplus: of all cells.
    """

    def __init__(self, targets: CellTargets, changed: Sequence[tuple[int, Strides, Strides]]) -> None:
        self.changed, self.surplus = changed, targets.surplus
        self.width = len(changed)

    def look(self, codes: Codes) -> None:
        """Look at pairs of rows. codes: (columns, 2, pairs)."""
        shape = self.width, codes.shape[2]
        cells, step = np.empty((2, *shape), dtype=np.int32), np.empty(shape, dtype=np.int32)
        moved = np.empty(shape, dtype=bool)
        for place, (first, side, others) in enumerate(self.changed):
            by_side, by_others = _coded(codes, side), _coded(codes, others)
            np.not_equal(by_others[0], by_others[1], out=moved[place])
            np.subtract(by_side[1], by_side[0], out=step[place])
            by_others += first
            np.add(by_side, by_others, out=cells[:, place])
        moved &= step != 0
        flat = np.flatnonzero(moved.T)
        self._pair = flat // self.width
        places = (flat - self._pair * self.width) * shape[1] + self._pair
        self._left = cells.reshape(2, -1).take(places, axis=1)
        self._by = step.reshape(-1).take(places)
        self._ends = np.searchsorted(self._pair, np.arange(shape[1] + 1))

    def costs(self, start: int, stop: int) -> Array:
        """What exchanging would add to the distance, for the pairs from `start` to `stop`."""
        self._part = part = slice(self._ends[start], self._ends[stop])
        self._start = start
        left, by = self._left[:, part], self._by[part]
        self._cells = cells = np.empty((4, len(by)), dtype=np.intp)  # two that are left, two that are entered
        cells[:2] = left
        np.add(left[0], by, out=cells[2])
        np.subtract(left[1], by, out=cells[3])
        price = self.surplus.take(cells)
        price *= _TWICE
        price += 1
        np.clip(price, -1, 1, out=price)
        of_target = price[0] + price[1]  # one by one: NumPy's own order depends on the shape
        of_target += price[2]
        of_target += price[3]
        by_pair = np.bincount(self._pair[part] - start, of_target, stop - start)
        return by_pair.astype(np.float64, copy=False)

    def exchanged(self, good: Index) -> None:
        """These of the pairs last judged have exchanged their columns."""
        pair = self._pair[self._part] - self._start
        chosen = np.zeros(int(pair[-1]) + 1 if len(pair) else 0, dtype=bool)
        chosen[good[good < len(chosen)]] = True
        made = self._cells.take(np.flatnonzero(chosen.take(pair)), axis=1)
        np.add.at(self.surplus, made[:2].reshape(-1), np.float32(-1))
        np.add.at(self.surplus, made[2:].reshape(-1), np.float32(1))

    def close(self) -> None:
        """Nothing is kept apart from the targets."""


_TWICE = np.array([[-2], [-2], [2], [2]], dtype=np.float32)


def _coded(codes: Codes, strides: Strides) -> Codes:
    """The number of the cell in which these columns are. codes: first axis of columns."""
    (column, stride), *rest = strides
    found: Codes = codes[column] * np.int32(stride)
    for column, stride in rest:
        found += codes[column] * np.int32(stride) if stride > 1 else codes[column]
    return found
