"""Junction trees by greedy elimination on bitmasks, and the size of the tree a set of cliques would need.

Problem: exact inference in a Markov random field costs as much as the maximal cliques of a triangulation of its graph. AIM
asks, for each of about 160 candidates in each round, how large that triangulation becomes if the candidate is added
(`docs/design/algorithms.md` 5); `docs/design/algorithms.md` 5 found this filter to be half of a run when done with networkx.
Columns are bits of a Python integer, so a neighbourhood is one word and a union one instruction.

The heuristic: eliminate the column whose neighbourhood has the fewest cells (ties: the earlier column). The estimate and the
tree come from the same function, so a candidate that is said to fit does fit. Public inputs only; deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Clique = tuple[str, ...]

MIB = 2.0**20
CELL_BYTES = 8


class ColumnSet:
    """The columns of a domain as bits, with the number of cells of a set of columns (memoised).

    coarser: of a name, the names whose values are functions of its own (`levels`). They come with it, and cost no cells.
    """

    def __init__(self, sizes: Mapping[str, int], coarser: Mapping[str, Clique] | None = None) -> None:
        if not sizes:
            raise ValueError("A model needs at least one column, got none.")
        self.names: Clique = tuple(sizes)
        self.sizes: tuple[int, ...] = tuple(int(sizes[name]) for name in self.names)
        for name, size in zip(self.names, self.sizes, strict=True):
            if size < 1:
                raise ValueError(f"Column {name!r} must have at least one value, got size {size}.")
        self._bit = {name: 1 << index for index, name in enumerate(self.names)}
        self._implied = [
            sum(self._bit[other] for other in (coarser or {}).get(name, ())) for name in self.names
        ]
        self._layered = any(self._implied)
        self.known: dict[int, int] = {0: 1}
        """Of some masks, their cells."""
        # A column with a single value depends on nothing: it never needs an edge.
        self.varying = sum(1 << index for index, size in enumerate(self.sizes) if size > 1)

    def mask(self, clique: Iterable[str]) -> int:
        """The bits of `clique` and of what is coarser; ValueError for a column outside the domain."""
        mask = 0
        for name in clique:
            bit = self._bit.get(name)
            if bit is None:
                raise ValueError(f"Column {name!r} is not in the domain ({', '.join(self.names)}).")
            mask |= bit | self._implied[bit.bit_length() - 1]
        return mask

    @property
    def ties(self) -> list[int]:
        """A column with all that is coarser, of every column that has levels: what holds them together in the graph."""
        return [implied | 1 << index for index, implied in enumerate(self._implied) if implied]

    def bits(self, names: Iterable[str]) -> int:
        """The bits of these names alone."""
        return sum(self._bit[name] for name in set(names))

    def reduced(self, mask: int) -> int:
        """The mask without what is coarser than another of its columns."""
        if self._layered:
            rest = mask
            while rest:
                high = rest.bit_length() - 1
                rest = rest & ~self._implied[high] ^ 1 << high
                mask &= ~self._implied[high]
        return mask

    def members(self, mask: int) -> Clique:
        """The columns of `mask` in the domain's order."""
        return tuple(name for index, name in enumerate(self.names) if mask >> index & 1)

    def cells(self, mask: int) -> int:
        """Cells of a table over the columns of `mask`: the product of the sizes of those that no other one determines."""
        known = self.known.get(mask)
        if known is None:
            rest, larger = self.reduced(mask), []
            while (known := self.known.get(rest)) is None:
                larger.append(rest)
                rest &= rest - 1  # without its lowest column
            for each in reversed(larger):
                known = self.known[each] = known * self.sizes[(each & -each).bit_length() - 1]
            self.known[mask] = known
        return known


def _graph(columns: ColumnSet, masks: Iterable[int]) -> list[int]:
    """Neighbourhood of each column (itself included) in the graph that has every clique of `masks` as a clique."""
    near = [1 << index for index in range(len(columns.names))]
    for mask in masks:
        mask &= columns.varying
        rest = mask
        while rest:
            low = rest & -rest
            near[low.bit_length() - 1] |= mask
            rest ^= low
    return near


class _Elimination:
    """Greedy elimination in progress: the graph that is left, and the maximal cliques (bitmasks) found so far.

    near: of each column that is left, its neighbourhood, itself included. left: by column, its number of cells, times the number
    of columns plus the column, so that the smallest belongs to the column to eliminate next, the earlier one of two equals.
    """

    def __init__(self, columns: ColumnSet, near: list[int], without: int = 0) -> None:
        """without: the bits of columns that are no part of the graph."""
        self.columns, self.near = columns, near
        self.left = {
            column: columns.cells(mask) * len(near) + column
            for column, mask in enumerate(near)
            if not without >> column & 1
        }
        self.uneliminated = (1 << len(near)) - 1 & ~without
        self.found: list[int] = []

    def copy(self) -> _Elimination:
        """The same state, to go on from in another way."""
        other = _Elimination.__new__(_Elimination)
        other.columns, other.near, other.left = self.columns, list(self.near), dict(self.left)
        other.uneliminated, other.found = self.uneliminated, list(self.found)
        return other

    def next(self) -> int:
        """The column to eliminate next."""
        return min(self.left.values()) % len(self.near)

    def join(self, column: int, mask: int) -> None:
        """Make the columns of `mask` neighbours of `column`."""
        self.near[column] |= mask
        self.left[column] = self.columns.cells(self.near[column]) * len(self.near) + column

    def step(self) -> bool:
        """Eliminate a column; False if none is left, or those left are a clique."""
        near, left, count = self.near, self.left, len(self.near)
        cells, known = self.columns.cells, self.columns.known
        column = min(left.values()) % count
        clique = near[column]
        for other in self.found:
            if clique & other == clique:
                break
        else:
            self.found.append(clique)
        if clique == self.uneliminated:
            return False
        bit = 1 << column
        del left[column]
        self.uneliminated ^= bit
        rest = remaining = clique ^ bit
        while remaining:
            low = remaining & -remaining
            remaining ^= low
            neighbour = low.bit_length() - 1
            near[neighbour] = joined = (near[neighbour] | rest) & ~bit
            left[neighbour] = (known.get(joined) or cells(joined)) * count + neighbour
        return True


def _triangulate(columns: ColumnSet, near: list[int]) -> list[int]:
    """Maximal cliques (bitmasks) of the graph `near` after greedy elimination. `near` is consumed."""
    elimination = _Elimination(columns, near)
    while elimination.step():
        pass
    return elimination.found


class SizeEstimator:
    """Size of the junction tree of `cliques`, and of the tree with more cliques, for many candidates.

    `mb` is the size in MiB at 8 bytes a cell, summed over the maximal cliques (a column in no clique is a clique of its own).
    `with_clique(q)` is the size once `q` is added, and `links` with it; candidates that add the same edges share one elimination.
    Columns in `loose`, which no clique of `cliques` names, count only once a candidate names them.

    With `q` only columns of `q` have larger neighbourhoods than without it, and stay so until one of these columns is
    eliminated; every other column that is the smallest without `q` is so with it. So both eliminations are the same up to there,
    and the second one goes on from a state of the first. Loose columns join there.
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
        self._near = _graph(
            self._columns,
            (mask & ~self._loose for mask in [*map(self._columns.mask, cliques), *self._columns.ties]),
        )
        elimination = _Elimination(self._columns, list(self._near), self._loose)
        self._states = [elimination.copy()]
        while elimination.step():
            self._states.append(elimination.copy())
        self._order = [state.next() for state in self._states]
        self.mb: float = self._size(elimination.found)
        self._known: dict[tuple[int, ...], float] = {}

    def _size(self, maximal: Iterable[int]) -> float:
        return sum(map(self._columns.cells, maximal)) * CELL_BYTES / MIB

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
                if missing := mask & ~self._near[column]:
                    grown[column] = grown.get(column, 0) | missing
        if not grown:
            return self.mb
        key = tuple(part for item in sorted(grown.items()) for part in item)
        size = self._known.get(key)
        if size is None:
            last = len(self._order) - 1  # what is left there is a clique
            first = next((number for number, column in enumerate(self._order) if column in grown), last)
            elimination = self._states[first].copy()
            for column in grown:
                elimination.uneliminated |= 1 << column & self._loose
            for column, missing in grown.items():
                elimination.join(column, missing & elimination.uneliminated)
            most, counted, cells = limit_mb * MIB / CELL_BYTES, 0, 0
            while elimination.step():
                while counted < len(elimination.found):
                    cells += self._columns.cells(elimination.found[counted])
                    counted += 1
                if cells > most:
                    return cells * CELL_BYTES / MIB
            size = self._known[key] = self._size(elimination.found)
        return size


def model_size_mb(
    sizes: Mapping[str, int], cliques: Iterable[Clique], coarser: Mapping[str, Clique] | None = None
) -> float:
    """MiB (8 bytes a cell) of the maximal cliques of the junction tree that a model of `cliques` over `sizes` uses."""
    return SizeEstimator(sizes, cliques, coarser).mb


@dataclass(frozen=True)
class JunctionTree:
    """A rooted junction tree over the whole domain; parts that share no column are joined by an empty separator.

    `nodes[i]`: columns of maximal clique i; nodes stand in an order in which every parent precedes its children.
    `parents[i]`: index of the parent (-1 for the root, node 0). `separators[i]`: columns shared with the parent.
    Columns stand in one order everywhere, by size and then as in the domain: the last axis of an array is its longest, which
    is what the inner loops of NumPy want, and no two arrays ever need a transposition to meet.
    Nodes and separators name the finest level of each column alone; `members[i]`: of node i, with all that is coarser.
    """

    nodes: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]
    members: tuple[frozenset[str], ...]


def junction_tree(
    sizes: Mapping[str, int], cliques: Sequence[Clique], coarser: Mapping[str, Clique] | None = None
) -> JunctionTree:
    """The junction tree whose size `SizeEstimator(sizes, cliques, coarser)` reports, rooted at its largest clique."""
    columns = ColumnSet(sizes, coarser)
    maximal = _triangulate(columns, _graph(columns, [*map(columns.mask, cliques), *columns.ties]))
    maximal.sort(key=lambda mask: (-columns.cells(mask), mask))
    # Prim's maximum spanning tree on separator sizes: for maximal cliques of a chordal graph exactly the trees
    # that have the running intersection property.
    order, parents = [maximal[0]], [-1]
    best = {mask: (mask & maximal[0], 0) for mask in maximal[1:]}
    while best:
        mask = max(best, key=lambda m: (best[m][0].bit_count(), columns.cells(m), -m))
        parents.append(best.pop(mask)[1])
        for other, (separator, _) in best.items():
            if (other & mask).bit_count() > separator.bit_count():
                best[other] = (other & mask, len(order))
        order.append(mask)

    position = {name: (sizes[name], index) for index, name in enumerate(sizes)}

    def arranged(mask: int) -> Clique:
        return tuple(sorted(columns.members(columns.reduced(mask)), key=position.__getitem__))

    separators = [
        arranged(mask & order[parent]) if parent >= 0 else ()
        for mask, parent in zip(order, parents, strict=True)
    ]
    members = tuple(frozenset(columns.members(mask)) for mask in order)
    return JunctionTree(tuple(map(arranged, order)), tuple(parents), tuple(separators), members)
