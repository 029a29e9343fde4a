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
    """Exchanges of one side's columns. width: targets whose counts may change."""

    def __init__(self, targets: CellTargets, changed: Sequence[tuple[int, Strides, Strides]]) -> None:
        """changed: of each of these targets its first cell, its columns of the side, and its other ones."""
        self._targets, self._changed = targets, changed
        self.width = len(changed)

    def look(self, codes: Codes) -> None:
        """Look at pairs of rows. codes: (columns, 2, pairs)."""
        pairs = codes.shape[2]
        differ = codes[:, 0] != codes[:, 1]
        moved = np.empty((pairs, self.width), dtype=bool)
        by_side, by_others = (np.empty((self.width, *codes.shape[1:]), dtype=np.int32) for _ in range(2))
        for place, (first, side, others) in enumerate(self._changed):
            np.logical_and(_any(differ, side), _any(differ, others), out=moved[:, place])
            by_side[place], by_others[place] = _coded(codes, side), _coded(codes, others)
            by_others[place] += first
        flat = np.flatnonzero(moved)
        self._pair = flat // self.width
        places = (flat - self._pair * self.width) * (2 * pairs) + self._pair  # of the first row's code
        self._cells = np.empty((4, len(flat)), dtype=np.intp)  # two that are left, two that are entered
        for number, (one, other) in enumerate(((0, 0), (1, 1), (0, 1), (1, 0))):
            np.add(
                by_side.reshape(-1).take(places + one * pairs),
                by_others.reshape(-1).take(places + other * pairs),
                out=self._cells[number],
            )
        self._ends = np.searchsorted(self._pair, np.arange(pairs + 1))

    def costs(self, start: int, stop: int) -> Array:
        """What exchanging would add to the distance, for the pairs from `start` to `stop`."""
        self._part = part = slice(self._ends[start], self._ends[stop])
        self._start = start
        price = self._targets.surplus.take(self._cells[:, part])
        price *= _TWICE
        price += 1
        np.clip(price, -1, 1, out=price)
        by_pair = np.bincount(self._pair[part] - start, price.sum(axis=0), stop - start)
        return by_pair.astype(np.float64, copy=False)

    def exchanged(self, good: Index) -> None:
        """These of the pairs last judged have exchanged their columns."""
        pair = self._pair[self._part] - self._start
        chosen = np.zeros(int(pair[-1]) + 1 if len(pair) else 0, dtype=bool)
        chosen[good[good < len(chosen)]] = True
        made = self._cells[:, self._part][:, chosen.take(pair)]
        np.add.at(self._targets.surplus, made[:2].reshape(-1), np.float32(-1))
        np.add.at(self._targets.surplus, made[2:].reshape(-1), np.float32(1))

    def close(self) -> None:
        """Nothing is kept apart from the targets."""


_TWICE = np.array([[-2], [-2], [2], [2]], dtype=np.float32)


def _coded(codes: Codes, strides: Strides) -> Codes:
    """The number of the cell in which these columns are. codes: first axis of columns."""
    found = np.zeros(codes.shape[1:], dtype=np.int32)
    for column, stride in strides:
        found += codes[column] * np.int32(stride) if stride > 1 else codes[column]
    return found


def _any(differ: NDArray[np.bool_], strides: Strides) -> NDArray[np.bool_]:
    """Whether some of these columns differ."""
    found: NDArray[np.bool_] = np.logical_or.reduce(differ[[column for column, _ in strides]])
    return found
