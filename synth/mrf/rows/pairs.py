"""Exchanges judged by many pairs of columns at once, as products of matrices.

Problem: a table of 60 columns has 1,770 pairs, of which an exchange changes hundreds; looking up the cells of
each takes microseconds for every two rows. But let u be the difference of the one-hot rows of a and b, and v
its absolute value: 0 where the two agree. With their parts on the side that is exchanged (s) and on the other
(o), and for each cell

    more, less      what one row more and one row less would add to the distance
    slope, bend     half of (more - less), half of (more + less)

the exchange adds  v_o bend v_s - u_o slope u_s  to the sum of all distances, and  - u_o u_s  to the counts. Slope and bend are
matrices (values of all columns x values of the side), so many pairs of rows are judged by two products. All counts of all pairs
of columns are one symmetric matrix, counted by a product of one-hot rows too.

All these sums are exact in float32, as what the model wants of a cell is rounded to a binary fraction (`unit`) of
which no sum has more than 2^24: 1/256 of a row for 50,000 rows. So they are the same in any order, and what is
exchanged is, too, whatever computes them: a BLAS for whichever processor, or the kernel (`kernel/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique

Codes = NDArray[np.int32]
Matrix = NDArray[np.float32]

NARROW = 16  # values of a column up to which products are faster than looking up
MAX_VALUES = 4096  # of all columns together: three float32 tables of the square
DENSE = 0.25  # of all pairs of the columns: with fewer, looking up is faster
BLOCK = 2**12  # rows counted together
MANTISSA = 24  # bits of a float32


def unit(rows: int, columns: int) -> float:
    """To multiples of how many rows the model's counts are rounded: no count is above `rows`, and no sum of what
    exchanges add to distances above the square of the columns."""
    return 2.0 ** (max(rows, columns**2).bit_length() - MANTISSA)


def judged_as_pairs(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> set[Clique]:
    """Of the cliques those for `PairTargets`: pairs of columns of few values, if there are many of them."""
    pairs = [
        clique for clique in cliques if len(clique) == 2 and max(sizes[name] for name in clique) <= NARROW
    ]
    columns, values = set[str](), 0
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        if (values := values + sizes[name]) <= MAX_VALUES:
            columns.add(name)
    found: set[Clique] = {pair for pair in pairs if columns.issuperset(pair)}
    if len(found) < DENSE * len(columns) * (len(columns) - 1) / 2:
        found.clear()
    return found


class PairTargets:
    """Pairs of columns: by how much the table's counts exceed the model's, all in one symmetric matrix
    (values x values)."""

    def __init__(self, sizes: Mapping[str, int], pairs: Mapping[Clique, Array], values: Codes) -> None:
        """pairs: with the model's answer of each, flat. values: codes, (columns, rows)."""
        order = list(sizes)
        used = sorted({order.index(name) for pair in pairs for name in pair})
        self.columns = np.array(used)
        widths = [sizes[order[column]] for column in used]
        self.starts = np.concatenate(([0], np.cumsum(widths)))
        place = {order[column]: number for number, column in enumerate(used)}
        rows, cells = values.shape[1], int(self.starts[-1])
        counts = np.zeros((cells, cells))
        hot = np.zeros((min(BLOCK, rows), cells), dtype=np.float32)
        for start in range(0, rows, BLOCK):
            block = values[self.columns, start : start + BLOCK].T + self.starts[:-1]
            part = hot[: len(block)]
            part[...] = 0
            np.put_along_axis(part, block, np.float32(1), axis=1)
            counts += part.T @ part
        self.is_target = np.zeros((cells, cells), dtype=np.float32)
        self.surplus = np.zeros((cells, cells), dtype=np.float32)
        step = unit(rows, len(used))
        for pair, answer in pairs.items():
            one, other = (
                slice(self.starts[place[name]], self.starts[place[name]] + sizes[name]) for name in pair
            )
            goal = answer.reshape(sizes[pair[0]], sizes[pair[1]]) * (rows / answer.sum())
            goal = np.rint(goal / step) * step
            self.surplus[one, other] = counts[one, other] - goal
            self.surplus[other, one] = self.surplus[one, other].T
            self.is_target[one, other] = self.is_target[other, one] = 1

    def across(self, side: Sequence[int]) -> AcrossPairs | None:
        """For exchanges of the columns `side` with all others; None if no target has columns of both."""
        inside = np.repeat(np.isin(self.columns, side), np.diff(self.starts))
        cells = np.flatnonzero(inside)
        is_target = self.is_target[:, cells] * ~inside[:, None]
        return AcrossPairs(self, cells, is_target) if is_target.any() else None


class AcrossPairs:
    """Exchanges of one side's columns.

    width: columns that are looked at. columns, starts: of all columns that targets have, and where the values
    of each begin. cells: places of the side's values among all values. is_target, surplus: of (all values,
    those of the side), 0 or 1 and rows.
    """

    def __init__(self, targets: PairTargets, cells: NDArray[np.intp], is_target: Matrix) -> None:
        self._targets, self._half = targets, is_target / 2
        self.columns, self.starts, self.cells = targets.columns, targets.starts, cells
        self.is_target = np.ascontiguousarray(is_target)
        self.surplus = np.ascontiguousarray(targets.surplus[:, cells])
        self.width = len(targets.columns)
        self._price()

    def _price(self) -> None:
        """Slope and bend of each cell."""
        more, less = (np.abs(self.surplus + np.float32(step)) for step in (1, -1))
        self._bend: Matrix = more + less
        self._bend -= 2 * np.abs(self.surplus)
        self._bend *= self._half
        self._slope: Matrix = np.subtract(more, less, out=more)
        self._slope *= self._half

    def look(self, codes: Codes) -> None:
        """Look at pairs of rows. codes: (columns, 2, pairs)."""
        self._codes = codes

    def costs(self, start: int, stop: int) -> Matrix:
        """What exchanging would add to the distance, for the pairs from `start` to `stop`."""
        starts = self.starts
        firsts = np.arange(0, (stop - start) * starts[-1], starts[-1]) + starts[:-1, None]
        of_a, of_b = (self._codes[self.columns, row, start:stop] for row in (0, 1))
        self._differences = np.zeros((stop - start, starts[-1]), dtype=np.float32)
        flat = self._differences.reshape(-1)
        flat[firsts + of_a] = 1
        flat[firsts + of_b] -= 1
        size = np.abs(self._differences)
        found = size @ self._bend
        found *= size.take(self.cells, axis=1)
        linear = self._differences @ self._slope
        linear *= self._differences.take(self.cells, axis=1)
        found -= linear
        by_pair: Matrix = found.sum(axis=1)
        return by_pair

    def exchanged(self, good: NDArray[np.intp]) -> None:
        """These of the pairs last judged have exchanged their columns."""
        made = self._differences[good]
        self.surplus -= made.T @ made.take(self.cells, axis=1) * self.is_target
        self._price()

    def close(self) -> None:
        """Tell the targets what has changed."""
        self._targets.surplus[:, self.cells] = self.surplus
        self._targets.surplus[self.cells] = self.surplus.T
