"""The size of the junction tree that a set of cliques would need, for many candidates beside the same cliques.

Problem: AIM asks, for each of some hundred or thousand candidates in each round, how large the triangulation becomes if the
candidate is added (`docs/design/algorithms.md` 5). The answer is that of greedy elimination (`junction_tree.eliminate`), so a
candidate that is said to fit does fit; but most steps of that elimination are those of the one without the candidate.

Method: the elimination without the candidate is kept, each step with the graph before it. Beside it goes the one with the
candidate. At any moment `dirty` are the columns that only this one still has or whose neighbourhoods differ in the two, `gone`
those that only the other one still has.

    the kept step's column is neither     all columns that are not dirty have the same neighbourhoods, hence the same keys, and
                                          this is the smallest: if no dirty column has a smaller one, both eliminations take it
    a dirty column has a smaller key      the elimination with the candidate takes it alone
    otherwise                             the kept one takes its step alone; the neighbours may become dirty or cease to be

A step that both take away from all dirty columns is a comparison of two numbers and two masks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from synth.mrf.junction_tree import CELL_BYTES, MIB, Clique, ColumnSet, eliminate, graph


class _Kept(NamedTuple):
    """A step of the elimination that is kept. sources: the columns whose steps leave exactly this clique as their rest."""

    column: int
    key: float
    clique: int
    sources: int
    cells: int


_END = _Kept(-1, math.inf, 0, 0, 0)


class SizeEstimator:
    """Size of the junction tree of `cliques`, and of the tree with more cliques, for many candidates.

    `mb` is the size in MiB at 8 bytes a cell, summed over the maximal cliques (a column in no clique is a clique of its own).
    `with_clique(q)` is the size once `q` is added, and `links` with it; candidates that add the same edges share one elimination.
    Columns in `loose`, which no clique of `cliques` names, count only once a candidate names them.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        cliques: Iterable[Clique],
        coarser: Mapping[str, Clique] | None = None,
        loose: Iterable[str] = (),
        columns: ColumnSet | None = None,
    ) -> None:
        """columns: of the same sizes and levels, if they are at hand: their cells need not be counted again."""
        self._columns = columns or ColumnSet(sizes, coarser)
        self._loose = self._columns.bits(loose)
        masks = [*map(self._columns.mask, cliques), *self._columns.ties]
        self._graph = graph(self._columns, (mask & ~self._loose for mask in masks))
        near, self._near = list(self._graph), list[list[int]]()
        steps, self._sources = [], dict[int, int]()
        for step in eliminate(self._columns, near, self._loose):
            self._near.append(list(near))
            steps.append(step)
            self._sources[step.rest] = self._sources.get(step.rest, 0) | 1 << step.column
        self._near.append(near)
        self._steps = [
            _Kept(*step, self._sources.get(step.clique, 0), self._columns.cells(step.clique))
            for step in steps
        ]
        self._place = {step.column: number for number, step in enumerate(steps)}
        # Of the first steps: cells of their maximal cliques, and the columns that are left after them.
        self._cells = [0, *accumulate(0 if step.sources else step.cells for step in self._steps)]
        all_columns = (1 << len(near)) - 1 & ~self._loose
        self._left = list(accumulate((1 << step.column for step in steps), int.__xor__, initial=all_columns))
        self.mb: float = self._cells[-1] * CELL_BYTES / MIB
        self._known: dict[tuple[int, ...], float] = {}

    def with_clique(self, clique: Clique, links: Iterable[Clique] = (), limit_mb: float = math.inf) -> float:
        """MiB of the junction tree of the cliques together with `clique` and `links`; above the limit, of a part of it."""
        grown: dict[int, int] = {}
        named = ~self._loose | self._columns.bits(clique)
        for mask in map(self._columns.mask, (clique, *links)):
            mask &= self._columns.varying & named
            rest = mask
            while rest:
                low = rest & -rest
                rest ^= low
                column = low.bit_length() - 1
                if missing := mask & ~self._graph[column]:
                    grown[column] = grown.get(column, 0) | missing
        if not grown:
            return self.mb
        key = tuple(part for item in sorted(grown.items()) for part in item)
        size = self._known.get(key)
        if size is None:
            size = self._grown(grown, limit_mb * MIB / CELL_BYTES) * CELL_BYTES / MIB
            if size <= limit_mb:
                self._known[key] = size
        return size

    def _grown(self, grown: Mapping[int, int], most: float) -> int:
        """Cells of the maximal cliques once these columns have these neighbours too; above `most`, of a part of them."""
        known, cells_of, count, steps = self._columns.known, self._columns.cells, len(self._graph), self._steps
        end = len(steps)
        at = min((self._place[column] for column in grown if column in self._place), default=end)
        near, in_kept = self._near[at], self._left[at]
        common = self._left[0] & ~in_kept  # what a step of both has taken
        left = in_kept
        for column in grown:
            left |= 1 << column
        dirty: dict[int, int] = {}
        keys: dict[int, int] = {}
        dirty_mask, gone, rests, cells = 0, 0, set[int](), self._cells[at]
        least: float = math.inf

        def put(column: int, joined: int) -> None:
            """The column's neighbourhood in the elimination with the candidate: is it dirty?"""
            nonlocal dirty_mask
            if joined == near[column] and in_kept >> column & 1:
                if dirty.pop(column, None) is not None:
                    del keys[column]
                    dirty_mask ^= 1 << column
            else:
                dirty[column] = joined
                keys[column] = (known.get(joined) or cells_of(joined)) * count + column
                dirty_mask |= 1 << column

        for column, missing in grown.items():
            put(column, near[column] | missing & left)
        least = min(keys.values(), default=math.inf)
        while left:
            column, key, clique, sources, size = steps[at] if at < end else _END
            if key < least:
                bit = 1 << column
                at += 1
                in_kept ^= bit
                both = not (dirty_mask | gone) & bit
                if both:
                    if not (sources & common or clique in rests):
                        cells += size
                    if clique == left:
                        break
                    common |= bit
                    left ^= bit
                    touched = clique & dirty_mask
                else:
                    gone &= ~bit
                    touched = clique & left & ~bit
                if touched:
                    before, near = near, self._near[at]
                    rest = clique ^ bit
                    while touched:
                        low = touched & -touched
                        touched ^= low
                        other = low.bit_length() - 1
                        own = dirty[other] if dirty_mask & low else before[other]
                        put(other, (own | rest) & ~bit if both else own)
                    least = min(keys.values(), default=math.inf)
                else:
                    near = self._near[at]
                if not both:
                    continue
            else:
                column = int(least) % count
                bit = 1 << column
                clique = dirty.pop(column)
                del keys[column]
                dirty_mask ^= bit
                if not (self._sources.get(clique, 0) & common or clique in rests):
                    cells += known.get(clique) or cells_of(clique)
                if clique == left:
                    break
                left ^= bit
                gone |= bit & in_kept
                rest = touched = clique ^ bit
                rests.add(rest)
                while touched:
                    low = touched & -touched
                    touched ^= low
                    other = low.bit_length() - 1
                    put(other, ((dirty[other] if dirty_mask & low else near[other]) | rest) & ~bit)
                least = min(keys.values(), default=math.inf)
            if cells > most:
                break
        return cells


def model_size_mb(
    sizes: Mapping[str, int], cliques: Iterable[Clique], coarser: Mapping[str, Clique] | None = None
) -> float:
    """MiB (8 bytes a cell) of the maximal cliques of the junction tree that a model of `cliques` over `sizes` uses."""
    return SizeEstimator(sizes, cliques, coarser).mb
