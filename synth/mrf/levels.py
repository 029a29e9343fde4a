"""Columns of a model at several resolutions: bins of their values, and how tables at different resolutions
meet.

Problem: some marginals are measured over bins of a column's values, so a model may hold a column at several
resolutions. The levels of a column are nested: a coarser bin is a function of a finer one and of the value.
So wherever a table holds a column at some level, it holds every coarser one as well, without a cell more;
combinations that the bins exclude have no cell at all, and stay impossible through fitting, storing and
sampling.

A clique therefore brings the coarser levels of its columns into the graph (`closure`), the tree's cliques are
triangulated with them, and the table of a tree's clique has one axis a column, at the finest level that the
clique holds (`reduced`). Where two tables meet at different levels, the coarser one is repeated along the
finer axis (`lifted`) or the finer one summed over its bins (`summed`). On a model of Adult with 61 cliques
this takes a sixth of the cells of a tree that has an axis for each level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Level
from synth.mrf.factor import Array, aligned
from synth.mrf.junction_tree import Clique, ColumnSet
from synth.mrf.schedule import subscripts

Index = NDArray[np.intp]
Levels = Mapping[str, Level]
"""Levels by their names in the model, which are no names of columns."""


class Chains:
    """The columns of a model and their levels.

    sizes: of all of them, each column preceded by its levels, the coarsest first. column: of each name, the
    column it stands for. rank: larger for a finer level of the same column. coarser: the coarser levels of
    each name.
    """

    def __init__(self, sizes: Mapping[str, int], levels: Levels) -> None:
        """sizes: of the domain's columns, in order. ValueError: a level of an unknown column, of another
        size, or not nested."""
        self.levels = dict(levels)
        of: dict[str, list[str]] = {name: [] for name in sizes}
        for name, level in self.levels.items():
            if (
                name != level.name
                or name in sizes
                or level.column not in sizes
                or len(level.bins) != sizes[level.column]
            ):
                raise ValueError(f"The level {name!r} does not fit the columns of the model.")
            of[level.column].append(name)
        self.sizes: dict[str, int] = {}
        self.column: dict[str, str] = {}
        self.coarser: dict[str, Clique] = {}
        for column, size in sizes.items():
            chain = sorted(of[column], key=lambda name: (self.levels[name].size, name))
            for coarse, fine in pairwise(chain):
                bins_within(self.levels[coarse], self.levels[fine])
            self.sizes |= {name: self.levels[name].size for name in chain} | {column: size}
            for place, name in enumerate([*chain, column]):
                self.column[name] = column
                self.coarser[name] = tuple(chain[:place])
        self.rank = {name: place for place, name in enumerate(self.sizes)}
        self._at: dict[tuple[Clique, Clique], Clique] = {}
        self._bins: dict[tuple[str, str], Index] = {}
        self._matrices: dict[tuple[str, str], Array] = {}

    @classmethod
    def used(cls, sizes: Mapping[str, int], levels: Levels, cliques: Iterable[Clique]) -> Chains:
        """With those levels only that a clique names."""
        named = {name for clique in cliques for name in clique}
        return cls(sizes, {name: level for name, level in levels.items() if name in named})

    def check(self) -> None:
        """Raise ValueError unless the levels of each column are nested: for levels that somebody else has
        made."""
        for name, coarser in self.coarser.items():
            if coarser:
                self.bins(name, coarser[-1])

    def columns(self) -> ColumnSet:
        """The names as bits, each with its coarser levels."""
        return ColumnSet(self.sizes, self.coarser)

    def bins(self, fine: str, coarse: str) -> Index:
        """The coarse bin of every value of a finer level."""
        known = self._bins.get((fine, coarse))
        if known is None:
            coarser = self.levels[coarse]
            known = (
                bins_within(coarser, self.levels[fine])
                if fine in self.levels
                else np.array(coarser.bins, dtype=np.intp)
            )
            self._bins[fine, coarse] = known
        return known

    def finest(self, *cliques: Iterable[str]) -> dict[str, str]:
        """Of each column that any of these names stand for, the finest of them."""
        found: dict[str, str] = {}
        for clique in cliques:
            for name in clique:
                column = self.column[name]
                if column not in found or self.rank[name] > self.rank[found[column]]:
                    found[column] = name
        return found

    def coarser_of(self, one: str, other: str) -> str:
        """The coarser of two names of the same column."""
        return one if self.rank[one] <= self.rank[other] else other

    def at(self, columns: Clique, target: Clique) -> Clique:
        """The names of `target` that stand for these columns, in their order."""
        known = self._at.get((columns, target))
        if known is None:
            names = {self.column[name]: name for name in target}
            known = self._at[columns, target] = tuple(names[self.column[name]] for name in columns)
        return known

    def lifted(self, values: Array, columns: Clique, target: Clique) -> Array:
        """`values` (axes `columns`) with the axes of `target`, whose levels are as fine or finer; length 1
        where it lacks one."""
        names = self.at(columns, target)
        for axis, (own, fine) in enumerate(zip(columns, names, strict=True)):
            if own != fine:
                values = values.take(self.bins(fine, own), axis=axis)
        return aligned(values, names, target)

    def cells_of(self, columns: Clique, target: Clique) -> Index:
        """For each cell of `target` (flat), the cell of `columns` it lies in; one level finer or equal of
        each column."""
        shape = tuple(self.sizes[name] for name in columns)
        cells = np.arange(prod(shape), dtype=np.float64).reshape(shape)
        there = np.broadcast_to(self.lifted(cells, columns, target), [self.sizes[name] for name in target])
        return np.ascontiguousarray(there).reshape(-1).astype(np.intp)

    def summed(self, values: Array, columns: Clique, target: Clique) -> Array:
        """`values` (axes `columns`) summed down to `target`, whose levels are as coarse or coarser."""
        if columns == target:
            return values
        names = self.at(target, columns)
        values = np.einsum(subscripts(columns, names), values)
        for axis, (fine, own) in enumerate(zip(names, target, strict=True)):
            if fine != own:
                values = summed_along(values, axis, self.sums(fine, own))
        return values

    def log_summed(self, values: Array, columns: Clique, target: Clique) -> tuple[Array, Array, Array]:
        """`summed` of weights given by their logarithms: (the weights in units of the largest that is added
        to the same sum, the sums in that unit, the logarithms of the sums). A sum of nothing but zeros is 0,
        its logarithm -inf."""
        names = self.at(target, columns)
        kept = set(names)
        top = values.max(
            axis=tuple(axis for axis, name in enumerate(columns) if name not in kept), keepdims=True
        )
        for axis, name in enumerate(columns):
            if name in kept and name not in target:
                order, starts = self._groups(name, self.at((name,), target)[0])
                top = np.maximum.reduceat(top.take(order, axis=axis), starts, axis=axis)
        top = np.where(np.isfinite(top), top, 0.0)  # a slice of impossible cells stays one: its sum is 0
        below = tuple(name if name not in kept else self.at((name,), target)[0] for name in columns)
        spread = top
        for axis, (fine, own) in enumerate(zip(columns, below, strict=True)):
            if fine != own:
                spread = spread.take(self.bins(fine, own), axis=axis)
        weights = values - spread
        np.exp(weights, out=weights)
        total = self.summed(weights, columns, target)
        peak = top.reshape([size for size, name in zip(top.shape, columns, strict=True) if name in kept])
        held = tuple(name for name in below if name in target)
        with np.errstate(divide="ignore"):
            logs: Array = np.log(total) + peak.transpose([held.index(name) for name in target])
        return weights, total, logs

    def sums(self, fine: str, coarse: str) -> Array:
        """The 0/1 matrix (coarse, fine) that sums the finer level's values into the coarser one's."""
        known = self._matrices.get((fine, coarse))
        if known is None:
            bins = self.bins(fine, coarse)
            known = self._matrices[fine, coarse] = np.zeros((self.sizes[coarse], len(bins)))
            known[bins, np.arange(len(bins))] = 1.0
        return known

    def _groups(self, fine: str, coarse: str) -> tuple[Index, Index]:
        """An order of the finer level's values in which bins are together, and where each bin begins."""
        bins = self.bins(fine, coarse)
        order = np.argsort(bins, kind="stable")
        return order, np.searchsorted(bins[order], np.arange(self.sizes[coarse]))


def summed_along(values: Array, axis: int, sums: Array) -> Array:
    """`values` with an axis summed into bins. sums: 0/1, (bins, length of the axis)."""
    shape = values.shape
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    if after == 1:
        found = values.reshape(before, shape[axis]) @ sums.T
    else:
        found = np.matmul(sums, values.reshape(before, shape[axis], after))
    return found.reshape(*shape[:axis], len(sums), *shape[axis + 1 :])


@lru_cache(1 << 10)  # a run makes chains of the same levels for every fit
def bins_within(coarser: Level, finer: Level) -> Index:
    """The coarser bin of each bin of the finer level (not to be changed). ValueError if the two are not nested."""
    bins = np.array(coarser.bins, dtype=np.intp)
    found = np.zeros(finer.size, dtype=np.intp)
    found[list(finer.bins)] = bins
    if not np.array_equal(found[list(finer.bins)], bins):
        raise ValueError(f"The levels {coarser.name!r} and {finer.name!r} are not nested.")
    return found
