"""Tables of probabilities over columns: products and sums, all axes in one order of the columns.

Problem: summing columns out of a product of two tables of ten axes is what answers across cliques cost
(`elimination.py`). A transposition, or an inner loop over an axis of two cells, takes ten times as long as the
multiplication. So all tables of a model have their axes in one order, the columns that most large tables hold
last: axes that two tables share lie together, and NumPy runs through them as one. A product is made in blocks
that stay in the processor's cache and is summed while it is there; only where many cells are summed for many
combinations of the other columns it is a product of matrices.

Columns may stand at different levels (`synth/mrf/levels.py`): a table has one axis a column, at one level; a product
has the finest one that both need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2, prod
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique
from synth.mrf.levels import Chains, summed_along

MAX_TABLE_CELLS = 2**28  # of one intermediate or final table: 2 GiB
SMALL = 2**14  # cells of a product that is made at once: choosing a way would take longer
BLOCK = 2**17  # cells of a product that are made and summed together
CALL_CELLS = 2**11  # what NumPy could multiply while it is called
RUN = 32  # cells in a row: an axis of bins with fewer behind it is expanded before the multiplication
LONG_SUM, MANY_SUMS = 32, 8  # cells summed, and sums of each: from here on matrices are faster


def check_cells(sizes: Mapping[str, int], columns: Clique) -> None:
    """Raise ValueError where a table over these columns would have more than `MAX_TABLE_CELLS`."""
    if (cells := prod([sizes[name] for name in columns])) > MAX_TABLE_CELLS:
        raise ValueError(
            f"This marginal needs a table of {cells} cells over ({', '.join(columns)}); ask for fewer columns."
        )


@dataclass(frozen=True)
class Table:
    """An array with one axis per column, in probability or count space.

    condition: of a conditional distribution, what it is conditional on, each the level of a column that the
    array has or refines.
    """

    columns: Clique
    values: Array
    condition: Clique = ()


@dataclass(frozen=True)
class _Sum:
    """One axis summed. shape: of the array, (cells before it, its own, behind it). starts: where each bin begins,
    and the end, if it is summed into bins; matrix: 0/1, (bins, values), if bins are not contiguous or the axis is the last."""

    shape: tuple[int, int, int]
    starts: Sequence[int] = ()
    matrix: Array | None = None

    def of(self, values: Array) -> Array:
        """values: contiguous, of as many cells as `shape`."""
        before, length, after = self.shape
        if self.matrix is not None:
            return summed_along(values.reshape(self.shape), 1, self.matrix)
        parts = values.reshape(self.shape)
        if not self.starts:
            return parts[:, 0] + parts[:, 1] if length == 2 else np.add.reduce(parts, axis=1)
        found = np.empty((before, len(self.starts) - 1, after))
        for place, start in enumerate(self.starts[:-1]):
            stop, into = self.starts[place + 1], found[:, place]
            if stop == start + 1:
                into[...] = parts[:, start]
            elif stop == start + 2:
                np.add(parts[:, start], parts[:, start + 1], out=into)
            else:
                np.add.reduce(parts[:, start:stop], axis=1, out=into)
        return found


class _Side(NamedTuple):
    """One factor of a product: an axis for each of its columns, of length 1 where it lacks one; levels: its own, or None."""

    values: Array
    levels: tuple[str | None, ...]


class _Factors(NamedTuple):
    """A product to make. names: its axes, each at the finest level of its sides. results: at which level each is
    kept, None if it is summed; out: those that are kept."""

    names: Clique
    results: tuple[str | None, ...]
    sides: Sequence[_Side]
    out: Clique


class Tables:
    """Products and sums of tables whose columns stand in one order."""

    def __init__(self, chains: Chains, nodes: Sequence[Clique]) -> None:
        """nodes: column names of the large tables, which decide about the order."""
        self.chains, self._sizes = chains, chains.sizes
        cells = dict.fromkeys(chains.column, 0)  # of the tables that have a column at this level
        for node in nodes:
            for name in node:
                cells[name] += prod(self._sizes[other] for other in node)
        held = dict.fromkeys(chains.column.values(), 0.0)
        for name, column in chains.column.items():
            held[column] = max(held[column], cells[name] * log2(self._sizes[name]))
        self.place = {name: at for at, name in enumerate(sorted(held, key=held.__getitem__))}
        self._known_starts: dict[tuple[str, str], list[int] | None] = {}
        self._steps: dict[tuple[Clique, Clique], list[_Sum]] = {}

    def order(self, names: Sequence[str] | set[str] | frozenset[str]) -> Clique:
        """Names of different columns in the order of all tables."""
        column, place = self.chains.column, self.place
        return tuple(sorted(names, key=lambda name: place[column[name]]))

    def arranged(self, columns: Clique, values: Array) -> Table:
        """A table of these axes. values: contiguous afterwards."""
        names = self.order(columns)
        order = [columns.index(name) for name in names]
        return Table(names, np.ascontiguousarray(values.transpose(order)))

    def project(self, table: Table, columns: Clique) -> Table:
        """Sum down to `columns`, in the order of all tables; levels as coarse as the table's or coarser."""
        return (
            table
            if columns == table.columns
            else Table(columns, self._summed(table.values, table.columns, columns))
        )

    def restricted(self, table: Table, levels: Mapping[str, str]) -> Table:
        """Sum over the columns that `levels` (column: level) lacks, and to these levels where they are
        coarser than the own."""
        return self.project(table, self.restriction(table.columns, levels))

    def restriction(self, columns: Clique, levels: Mapping[str, str]) -> Clique:
        """What `restricted` leaves of the columns."""
        column, rank = self.chains.column, self.chains.rank
        return tuple(
            level if rank[level] < rank[name] else name
            for name in columns
            if (level := levels.get(column[name])) is not None
        )

    def contract(self, left: Table, right: Table, target: Mapping[str, str]) -> Table:
        """Product of two tables summed down to `target` (column: level), or to their own level where that is
        coarser. ValueError: a result of more than `MAX_TABLE_CELLS`."""
        column, rank = self.chains.column, self.chains.rank
        ours, theirs = ({column[n]: n for n in table.columns} for table in (left, right))

        def needed(own: Mapping[str, str], others: Mapping[str, str]) -> Clique:
            """What the other side or the result can tell apart; the rest of a side is summed first."""
            found = []
            for of, name in own.items():
                other, wanted = others.get(of), target.get(of)
                if other is None or (wanted is not None and rank[wanted] > rank[other]):
                    other = wanted
                if other is not None:
                    found.append(other if rank[other] < rank[name] else name)
            return tuple(found)

        left, right = self.project(left, needed(ours, theirs)), self.project(right, needed(theirs, ours))
        joint = self.chains.finest(left.columns, right.columns)
        names = tuple(joint[of] for of in sorted(joint, key=self.place.__getitem__))
        out = self.restriction(names, target)
        check_cells(self._sizes, out)
        alike = {*left.columns, *right.columns}
        if len(alike) == len(names) and alike.issuperset(out) and self._cells(names) <= SMALL:
            letter = dict(zip(names, ascii_letters, strict=False))
            a, b, kept = (
                "".join(map(letter.__getitem__, some)) for some in (left.columns, right.columns, out)
            )
            return Table(out, np.einsum(f"{a},{b}->{kept}", left.values, right.values, order="C"))
        sides = [self._side(table, names) for table in (left, right)]
        results = {column[name]: name for name in out}
        factors = _Factors(names, tuple(results.get(column[name]) for name in names), sides, out)
        values = self._as_matrices(factors)
        return Table(out, self._in_blocks(factors) if values is None else values)

    def _cells(self, names: Clique) -> int:
        return prod([self._sizes[name] for name in names])

    def _side(self, table: Table, names: Clique) -> _Side:
        """The table with an axis for each of `names`."""
        column = self.chains.column
        own = {column[name]: name for name in table.columns}
        levels = tuple(own.get(column[name]) for name in names)
        return _Side(
            table.values.reshape([1 if level is None else self._sizes[level] for level in levels]), levels
        )

    def _expanded(self, side: _Side, at: int, fine: str) -> _Side:
        """With bins of an axis repeated for each value of a finer level."""
        coarse = side.levels[at]
        assert coarse is not None
        values = side.values.take(self.chains.bins(fine, coarse), axis=at)
        return _Side(values, (*side.levels[:at], fine, *side.levels[at + 1 :]))

    def _as_matrices(self, of: _Factors) -> Array | None:
        """The product by BLAS, summed; None where that does not pay."""
        names, (left, right) = of.names, of.sides
        kinds: tuple[list[int], ...] = (
            [],
            [],
            [],
            [],
        )  # axes of both that are kept, of one, of the other, summed
        for at, result in enumerate(of.results):
            alone = 1 if right.levels[at] is None else 2 if left.levels[at] is None else 0
            kinds[alone or (0 if result else 3)].append(at)
        batch, rows, cols, summed = kinds
        shape = [self._sizes[name] for name in names]
        cells = [prod([shape[at] for at in kind]) for kind in kinds]
        if cells[3] < LONG_SUM or cells[1] * cells[2] < MANY_SUMS:
            return None
        matrices = []
        for side, only in ((left, rows), (right, cols)):
            for at in batch:
                if side.levels[at] != names[at]:
                    side = self._expanded(side, at, names[at])
            none = [at for at, level in enumerate(side.levels) if level is None]
            arranged = side.values.transpose([*none, *batch, *only, *summed])
            matrices.append(arranged.reshape(cells[0], -1, cells[3]))
        kept = sorted(made := [*batch, *rows, *cols])
        found = (matrices[0] @ matrices[1].transpose(0, 2, 1)).reshape([shape[at] for at in made])
        found = np.ascontiguousarray(found.transpose([made.index(at) for at in kept]))
        return self._summed(found, tuple(names[at] for at in kept), of.out)

    def _in_blocks(self, of: _Factors) -> Array:
        """The product block by block, each summed while it is in the cache."""
        names, sides, sizes = of.names, list(of.sides), self._sizes
        shape = [sizes[name] for name in names]
        ahead, block = 0, prod(shape)  # axes that are looped over, cells of what is left
        while block > BLOCK:
            block //= shape[ahead]
            ahead += 1
        cuts = [  # axes that one side has in bins
            (side.values.shape[at], at, which)
            for which, side in enumerate(sides)
            for at in range(ahead, len(names))
            if (level := side.levels[at]) is not None and level != names[at]
        ]
        pieces, cut = prod([bins for bins, _, _ in cuts]), []
        for bins, at, which in sorted(cuts, reverse=True):
            starts = self._starts(names[at], str(sides[which].levels[at]))
            if prod(shape[at + 1 :]) < RUN or pieces * CALL_CELLS > block or starts is None:
                sides[which] = self._expanded(sides[which], at, names[at])
                pieces //= bins
            else:
                cut.append((at - ahead, which, starts))
        if not ahead and not cut:
            return self._summed(sides[0].values * sides[1].values, names, of.out)
        indices, rest = _pieces(len(shape) - ahead, cut), tuple(filter(None, of.results[ahead:]))
        within = [[self._within(names[at], side.levels[at]) for at in range(ahead)] for side in sides]
        into = [self._within(names[at], of.results[at]) for at in range(ahead) if of.results[at]]
        kept = [at for at in range(ahead) if of.results[at]]
        found, made = np.zeros([sizes[name] for name in of.out]), np.empty(shape[ahead:])
        for values in product(*map(range, shape[:ahead])):
            a, b = (
                side.values[tuple(where[value] for where, value in zip(places, values, strict=True))]
                for side, places in zip(sides, within, strict=True)
            )
            for of_a, of_b, of_made in indices:
                np.multiply(a[of_a], b[of_b], out=made[of_made])
            part = self._summed(made, names[ahead:], rest)
            if not ahead:
                return part
            found[tuple(where[values[at]] for where, at in zip(into, kept, strict=True))] += part
        return found

    def _within(self, fine: str, coarse: str | None) -> Sequence[int]:
        """The bin of each value of a finer level, or of the same; 0 where there is none."""
        if coarse is None:
            return [0] * self._sizes[fine]
        return range(self._sizes[fine]) if fine == coarse else self.chains.bins(fine, coarse).tolist()

    def _starts(self, fine: str, coarse: str) -> list[int] | None:
        """Where each bin of a finer level's values begins, and the end of the last; None unless all are contiguous."""
        if (fine, coarse) not in self._known_starts:
            bins = self.chains.bins(fine, coarse)
            steps = np.diff(bins)
            whole = (
                bins[0] == 0
                and bins[-1] == self._sizes[coarse] - 1
                and bool(((steps == 0) | (steps == 1)).all())
            )
            self._known_starts[fine, coarse] = (
                [0, *(np.flatnonzero(steps) + 1).tolist(), len(bins)] if whole else None
            )
        return self._known_starts[fine, coarse]

    def _summed(self, values: Array, columns: Clique, target: Clique) -> Array:
        """`values` (contiguous, axes `columns`) summed down to `target`; a new array, or `values` itself."""
        steps = self._steps.get((columns, target))
        if steps is None:
            steps = self._steps[columns, target] = self._planned(columns, target)
        for step in steps:
            values = step.of(values)
        return values.reshape([self._sizes[name] for name in target])

    def _planned(self, columns: Clique, target: Clique) -> list[_Sum]:
        """The axes to sum, the outermost first: what is left is smaller, and the longest runs come first."""
        levels = {self.chains.column[name]: name for name in target}
        wanted = [levels.get(self.chains.column[name]) for name in columns]
        shape = [self._sizes[name] for name in columns]
        steps, at = [], 0
        while at < len(columns):
            end = at + 1
            if wanted[at] is None:
                while end < len(columns) and wanted[end] is None:
                    end += 1
            if (to := wanted[at]) != columns[at]:
                size = prod(shape[:at]), prod(shape[at:end]), prod(shape[end:])
                starts: Sequence[int] = ()
                matrix = np.ones((1, size[1])) if size[2] == 1 else None
                if to is not None:
                    starts = self._starts(columns[at], to) or ()
                    if not starts or size[2] == 1:
                        matrix = np.zeros((self._sizes[to], size[1]))
                        matrix[self.chains.bins(columns[at], to), np.arange(size[1])] = 1.0
                steps.append(_Sum(size, starts, matrix))
                shape[at:end] = [1 if to is None else self._sizes[to]] + [1] * (end - at - 1)
            at = end
        return steps


Index = tuple[slice, ...]


def _pieces(axes: int, cuts: Sequence[tuple[int, int, Sequence[int]]]) -> list[tuple[Index, Index, Index]]:
    """Which parts of two arrays to multiply, and where each product goes, so that an axis that one of them has
    in bins needs no copy. cuts: (axis, which array has bins, where each begins, and the end)."""
    found = []
    for bins in product(*(range(len(starts) - 1) for _, _, starts in cuts)):
        index = [[slice(None)] * axes for _ in range(3)]
        for number, (at, which, starts) in zip(bins, cuts, strict=True):
            for one in index:
                one[at] = slice(starts[number], starts[number + 1])
            index[which][at] = slice(number, number + 1)
        found.append((tuple(index[0]), tuple(index[1]), tuple(index[2])))
    return found
