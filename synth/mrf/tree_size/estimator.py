"""The size of the junction tree that a set of cliques would need, for many candidates beside the same
cliques.

Problem: AIM asks, for each of some hundred or thousand candidates in each round, how large the triangulation
becomes if the candidate is added (`docs/design/algorithms.md` 5). The answer is that of greedy elimination
(`junction_tree.eliminate`), so a candidate that is said to fit does fit; but most steps of that elimination
are those of the one without the candidate.

Method: the elimination without the candidate is kept, each step with the graph before it. Beside it goes the
one with the candidate. At any moment `dirty` are the columns that only this one still has or whose
neighbourhoods differ in the two, `gone` those that only the other one still has.

    the kept step's column is neither     all columns that are not dirty have the same neighbourhoods, hence the same keys, and
                                          this is the smallest: if no dirty column has a smaller one, both eliminations take it
    a dirty column has a smaller key      the elimination with the candidate takes it alone
    otherwise                             the kept one takes its step alone; the neighbours may become dirty or cease to be

Steps that both take one after the other, away from all that differs, are passed over at once: the next one with a key that
is not below the least dirty one, or with a column that differs, is looked up, and the cells between are a difference of
running sums. A clique of these steps counts otherwise than there only if a step that one elimination alone has taken leaves
it as its rest (`watched`).

How many cells a candidate adds follows from the connected parts of the graph that it touches: what is
eliminated elsewhere is the same with it and without it. So it is counted once for all estimators of the same
columns in which these parts are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

from synth.mrf.junction_tree import CELL_BYTES, MIB, Clique, ColumnSet, eliminate, graph
from synth.mrf.tree_size.compiled import CompiledElimination, elimination

MAX_GROWN = 1 << 16
"""Candidates whose cells are remembered before all of them are forgotten."""
MIN_IN_PYTHON = 16
"""Eliminations of one graph that are made in Python before its columns get places for machine code."""


class _Kept(NamedTuple):
    """A step of the elimination that is kept. bit: of its column. sources: the columns whose steps leave
    exactly this clique as their rest."""

    bit: int
    key: float
    clique: int
    sources: int
    cells: int


class SizeEstimator:
    """Size of the junction tree of `cliques`, and of the tree with more cliques, for many candidates.

    `mb` is the size in MiB at 8 bytes a cell, summed over the maximal cliques (a column in no clique is a
    clique of its own). `with_clique(q)` is the size once `q` is added; candidates that add the same edges
    share one elimination. Columns in `loose`, which no clique of `cliques` names, count only once a candidate
    names them: what is coarser than other columns then comes into every clique that holds one of these.
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
            _Kept(
                1 << step.column,
                step.key,
                step.clique,
                self._sources.get(step.clique, 0),
                self._columns.cells(step.clique),
            )
            for step in steps
        ]
        self._steps.append(_Kept(0, math.inf, 0, 0, 0))
        self._place = {step.column: number for number, step in enumerate(steps)}
        # Of the first steps: cells of their maximal cliques, and the columns that are left after them.
        self._cells = [0, *accumulate(0 if step.sources else step.cells for step in self._steps)]
        all_columns = (1 << len(near)) - 1 & ~self._loose
        self._left = list(accumulate((1 << step.column for step in steps), int.__xor__, initial=all_columns))
        self.mb: float = self._cells[-1] * CELL_BYTES / MIB
        self._part = self._parts()
        self._elimination: CompiledElimination | None = None
        self._in_python = 0
        if len(self._columns.grown) > MAX_GROWN:
            self._columns.grown.clear()

    def with_clique(self, clique: Clique, limit_mb: float = math.inf) -> float:
        """MiB of the junction tree of the cliques together with `clique`; above the limit, of a part of it."""
        return self.with_cliques((clique,), limit_mb)

    def with_cliques(self, cliques: Sequence[Clique], limit_mb: float = math.inf) -> float:
        """The same with several."""
        grown: dict[int, int] = {}
        named, masks, near = 0, list[int](), self._graph
        for clique in cliques:
            own, mask = self._columns.named(clique)
            named |= own
            masks.append(mask)
        kept = self._columns.varying & (~self._loose | named)
        for mask in masks:
            mask = rest = mask & kept
            while rest:
                low = rest & -rest
                rest ^= low
                column = low.bit_length() - 1
                if missing := mask & ~near[column]:
                    grown[column] = grown.get(column, 0) | missing
        if new := named & self._loose & self._columns.varying:
            self._join(new, grown)
        if not grown:
            return self.mb
        edges = sorted(grown.items())
        where = *chain.from_iterable(edges), *(self._part.get(column, -1) for column, _ in edges)
        most, before = limit_mb * MIB / CELL_BYTES, self._cells[-1]
        more = self._columns.grown.get(where)
        if more is not None and before + more <= most:
            return (before + more) * CELL_BYTES / MIB
        cells = self._counted(grown, most)
        if cells <= most:
            self._columns.grown[where] = cells - before
        return cells * CELL_BYTES / MIB

    def _join(self, new: int, grown: dict[int, int]) -> None:
        """Add to `grown` what joins columns that were loose to whatever holds a finer one, and to each other where
        their finer ones are held together."""
        holders, rest = dict[int, int](), new
        while rest:
            added = rest & -rest
            rest ^= added
            together = 0
            for column in self._columns.finer[added.bit_length() - 1]:
                if not self._loose >> column & 1:
                    together |= self._graph[column]
                else:
                    together |= new & 1 << column
            holders[added] = together
        for added, together in holders.items():
            coarse = added.bit_length() - 1
            for other in holders:
                if any(together >> column & 1 for column in self._columns.finer[other.bit_length() - 1]):
                    together |= other
            grown[coarse] = grown.get(coarse, 0) | together
            while together:
                low = together & -together
                together ^= low
                column = low.bit_length() - 1
                grown[column] = grown.get(column, 0) | added

    def _parts(self) -> dict[int, int]:
        """Of each column but loose ones, the connected part of the graph that it is in: a number, the same in
        each estimator that finds it."""
        found: dict[int, int] = {}
        for column, near in enumerate(self._graph):
            if column in found or self._loose >> column & 1:
                continue
            members = rest = near
            while rest:
                low = rest & -rest
                new = self._graph[low.bit_length() - 1] & ~members
                members |= new
                rest = rest ^ low | new
            of_part = [number for number in range(column, members.bit_length()) if members >> number & 1]
            neighbours = tuple(self._graph[number] for number in of_part)
            found |= dict.fromkeys(
                of_part, self._columns.parts.setdefault(neighbours, len(self._columns.parts))
            )
        return found

    def _counted(self, grown: Mapping[int, int], most: float) -> int:
        """As `_grown`; in machine code if there is any, and if so many are asked for that it pays."""
        if self._elimination is not None:
            cells = self._elimination.grown(grown, most)
            if cells is not None:
                return cells
        self._in_python += 1
        self._columns.steps += len(self._steps)
        self._columns.asked |= sum(1 << column for column in grown)
        if self._in_python % MIN_IN_PYTHON == 0:
            placed = self._columns.asked | sum(1 << column for column in self._place)
            self._elimination = elimination(self._columns, placed, self._graph, list(self._place))
        return self._grown(grown, most)

    def _grown(self, grown: Mapping[int, int], most: float) -> int:
        """Cells of the maximal cliques once these columns have these neighbours too; above `most`, of a part
        of them."""
        known, cells_of, count, steps = (
            self._columns.known,
            self._columns.cells,
            len(self._graph),
            self._steps,
        )
        at = min((self._place[column] for column in grown if column in self._place), default=len(steps) - 1)
        near, in_kept, cells = self._near[at], self._left[at], self._cells[at]
        common = self._left[0] & ~in_kept  # what a step of both has taken
        left = in_kept | sum(1 << column for column in grown if not in_kept >> column & 1)
        dirty = {column: near[column] | missing & left for column, missing in grown.items()}
        keys = {column: cells_of(joined) * count + column for column, joined in dirty.items()}
        mask = sum(1 << column for column in dirty)
        least: float = min(keys.values())
        gone, rests = 0, set[int]()
        watched = set[int]()  # steps whose cliques may be maximal in one elimination only
        while True:
            if steps[at].key < least and not steps[at].clique & (mask | gone):
                stop = self._until(at, least, mask | gone)
                more = self._cells[stop] - self._cells[at]
                for place in watched:
                    if at <= place < stop:
                        _, _, clique, sources, size = steps[place]
                        of_both = common | self._left[at] ^ self._left[place]
                        more += size * (bool(sources) - bool(sources & of_both or clique in rests))
                if cells + more > most or (gone and not mask):  # it may end among them: one by one
                    for bit, _, clique, sources, size in steps[at:stop]:
                        if not (sources & common or clique in rests):
                            cells += size
                        if clique == left or cells > most:
                            return cells
                        left ^= bit
                        common |= bit
                elif not mask:
                    return cells + more
                else:
                    cells += more
                    taken = self._left[at] ^ self._left[stop]
                    left ^= taken
                    common |= taken
                at = stop
            bit, key, clique, sources, size = steps[at]
            near, in_kept = self._near[at], self._left[at]
            both = kept = key < least
            if kept:
                at += 1
                in_kept ^= bit
                before, near = near, self._near[at]
                both = not (mask | gone) & bit
                if not both:
                    watched.add(self._places.get(clique ^ bit, -1))
                gone &= ~bit
                touched = clique & mask if both else clique & left & ~bit
            else:
                before, column = near, int(least) % count
                bit = 1 << column
                clique = dirty.pop(column)
                del keys[column]
                mask ^= bit
                gone |= bit & in_kept
                touched, size = clique ^ bit, known.get(clique) or cells_of(clique)
                sources = self._sources.get(clique, 0)
            # The neighbours, as the elimination with the candidate has them after the step, beside those of
            # the kept one.
            rest = clique ^ bit if both or not kept else 0
            taken = bit if both or not kept else 0
            if touched:
                while touched:
                    low = touched & -touched
                    touched ^= low
                    other = low.bit_length() - 1
                    had = dirty[other] if mask & low else None
                    joined = ((before[other] if had is None else had) | rest) & ~taken
                    if joined != near[other] or not in_kept & low:
                        if joined != had:
                            dirty[other] = joined
                            keys[other] = (known.get(joined) or cells_of(joined)) * count + other
                            mask |= low
                    elif mask & low:
                        del dirty[other], keys[other]
                        mask ^= low
                least = min(keys.values()) if keys else math.inf
            elif not kept:
                least = min(keys.values()) if keys else math.inf
            if taken:
                if not (sources & common or clique in rests):
                    cells += size
                if clique == left or cells > most:
                    return cells
                left ^= bit
                if both:
                    common |= bit
                else:
                    rests.add(rest)
                    watched.add(self._places.get(rest, -1))

    def _until(self, at: int, least: float, differing: int) -> int:
        """The first kept step from `at` on whose key is not below `least`, or whose clique has one of these
        columns."""
        holding = 0
        while differing:
            low = differing & -differing
            differing ^= low
            holding |= self._holding[low.bit_length() - 1]
        holding >>= at
        stop = at + (holding & -holding).bit_length() - 1 if holding else len(self._steps) - 1
        while at < stop and self._steps[at].key < least:
            at = self._greater[at]
        return min(at, stop)

    @cached_property
    def _places(self) -> dict[int, int]:
        """Of each kept step's clique, the step's place."""
        return {step.clique: place for place, step in enumerate(self._steps)}

    @cached_property
    def _holding(self) -> list[int]:
        """Of each column, the kept steps whose clique has it, as bits."""
        found = [0] * len(self._graph)
        for place, step in enumerate(self._steps):
            rest = step.clique
            while rest:
                low = rest & -rest
                rest ^= low
                found[low.bit_length() - 1] |= 1 << place
        return found

    @cached_property
    def _greater(self) -> list[int]:
        """Of each kept step, the next one with a larger key; of the last, which has the largest, itself."""
        found = [len(self._steps) - 1] * len(self._steps)
        waiting: list[int] = []
        for place, step in enumerate(self._steps):
            while waiting and self._steps[waiting[-1]].key < step.key:
                found[waiting.pop()] = place
            waiting.append(place)
        return found


def model_size_mb(
    sizes: Mapping[str, int], cliques: Iterable[Clique], coarser: Mapping[str, Clique] | None = None
) -> float:
    """MiB (8 bytes a cell) of the maximal cliques of the junction tree that a model of `cliques` over `sizes`
    uses."""
    return SizeEstimator(sizes, cliques, coarser).mb
