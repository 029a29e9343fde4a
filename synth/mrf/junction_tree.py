"""Junction trees by greedy elimination on bitmasks.

Problem: exact inference in a Markov random field costs as much as the maximal cliques of a triangulation of
its graph (`docs/design/algorithms.md` 5). Columns are bits of a Python integer, so a neighbourhood is one
word and a union one instruction.

The heuristic: eliminate the column whose neighbourhood has the fewest cells (ties: the earlier column).
Public inputs only; deterministic. How large the tree of more cliques would be: `tree_size`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Clique = tuple[str, ...]

MIB = 2.0**20
CELL_BYTES = 8
MAX_KNOWN = 1 << 18
"""Masks whose cells are remembered before all of them are forgotten: some 40 MB."""


class ColumnSet:
    """The columns of a domain as bits, with the number of cells of a set of columns (memoised).

    coarser: of a name, the names whose values are functions of its own (`levels`). They come with it, and
    cost no cells.
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
        self.finer: list[list[int]] = [[] for _ in self.names]
        """Of each name, the numbers of those that it comes with."""
        for index, implied in enumerate(self._implied):
            while implied:
                low = implied & -implied
                implied ^= low
                self.finer[low.bit_length() - 1].append(index)
        self._named: dict[Clique, tuple[int, int]] = {}
        self.known: dict[int, int] = {0: 1}
        """Of some masks, their cells."""
        self.parts: dict[tuple[int, ...], int] = {}
        """Connected parts of graphs over the columns, by the neighbourhoods of their columns (`tree_size`)."""
        self.grown: dict[tuple[int, ...], int] = {}
        """How many cells more a tree has with what a candidate adds to some parts (`tree_size`)."""
        self.asked = self.steps = 0
        """The bits of columns that candidates have named, and steps of eliminations made for them (`tree_size`)."""
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
        """A column with all that is coarser, of every column that has levels: what holds them together in the
        graph."""
        return [implied | 1 << index for index, implied in enumerate(self._implied) if implied]

    def named(self, clique: Clique) -> tuple[int, int]:
        """(`bits`, `mask`) of a clique; kept, as candidates are asked about again and again."""
        known = self._named.get(clique)
        if known is None:
            if len(self._named) > MAX_KNOWN:
                self._named.clear()
            known = self._named[clique] = self.bits(clique), self.mask(clique)
        return known

    def implied(self, column: int) -> int:
        """The bits of what is coarser than the column of this number."""
        return self._implied[column]

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
        """Cells of a table over the columns of `mask`: the product of the sizes of those that no other one
        determines."""
        known = self.known.get(mask)
        if known is None:
            known, rest, sizes = 1, self.reduced(mask), self.sizes
            while rest:
                low = rest & -rest
                rest ^= low
                known *= sizes[low.bit_length() - 1]
            if len(self.known) > MAX_KNOWN:
                self.known.clear()
            self.known[mask] = known
        return known


class Step(NamedTuple):
    """One column's elimination. key: smaller for what goes first. clique: it and its neighbours at that
    moment (a bitmask)."""

    column: int
    key: int
    clique: int

    @property
    def rest(self) -> int:
        """The neighbours, which it leaves as a clique."""
        return self.clique ^ 1 << self.column


def graph(columns: ColumnSet, masks: Iterable[int]) -> list[int]:
    """Neighbourhood of each column (itself included) in the graph that has every clique of `masks` as a
    clique."""
    near = [1 << index for index in range(len(columns.names))]
    for mask in masks:
        mask &= columns.varying
        rest = mask
        while rest:
            low = rest & -rest
            near[low.bit_length() - 1] |= mask
            rest ^= low
    return near


def eliminate(columns: ColumnSet, near: list[int], without: int = 0) -> Iterator[Step]:
    """Greedy elimination of the graph `near` to its end. without: the bits of columns that are no part of it.

    The key of a column is the number of cells of its neighbourhood, times the number of columns plus the
    column: of two equals the earlier one goes first. Each step is told before `near`, which is consumed,
    changes.
    """
    count, cells, known = len(near), columns.cells, columns.known
    left = {
        column: cells(mask) * count + column for column, mask in enumerate(near) if not without >> column & 1
    }
    while left:
        key = min(left.values())
        column = key % count
        clique = near[column]
        yield Step(column, key, clique)
        bit = 1 << column
        del left[column]
        rest = remaining = clique ^ bit
        while remaining:
            low = remaining & -remaining
            remaining ^= low
            neighbour = low.bit_length() - 1
            near[neighbour] = joined = (near[neighbour] | rest) & ~bit
            left[neighbour] = (known.get(joined) or cells(joined)) * count + neighbour


def maximal(steps: Iterable[Step]) -> list[int]:
    """Maximal cliques (bitmasks) of the graph that an elimination fills in.

    A clique lies in an earlier one if and only if one left exactly it as its rest: of the cliques that hold
    it, the last.
    """
    found: list[int] = []
    rests: set[int] = set()
    for step in steps:
        if step.clique not in rests:
            found.append(step.clique)
        rests.add(step.rest)
    return found


@dataclass(frozen=True)
class JunctionTree:
    """A rooted junction tree over the whole domain; parts that share no column are joined by an empty
    separator.

    `nodes[i]`: columns of maximal clique i; nodes stand in an order in which every parent precedes its
    children. `parents[i]`: index of the parent (-1 for the root, node 0). `separators[i]`: columns shared
    with the parent. Columns stand in one order everywhere, by size and then as in the domain: the last axis
    of an array is its longest, which is what the inner loops of NumPy want, and no two arrays ever need a
    transposition to meet. Nodes and separators name the finest level of each column alone; `members[i]`: of
    node i, with all that is coarser.
    """

    nodes: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]
    members: tuple[frozenset[str], ...]


def junction_tree(
    sizes: Mapping[str, int], cliques: Sequence[Clique], coarser: Mapping[str, Clique] | None = None
) -> JunctionTree:
    """The junction tree whose size `SizeEstimator(sizes, cliques, coarser)` reports, rooted at its largest
    clique."""
    columns = ColumnSet(sizes, coarser)
    found = maximal(eliminate(columns, graph(columns, [*map(columns.mask, cliques), *columns.ties])))
    found.sort(key=lambda mask: (-columns.cells(mask), mask))
    # Prim's maximum spanning tree on separator sizes: for maximal cliques of a chordal graph exactly the
    # trees that have the running intersection property.
    order, parents = [found[0]], [-1]
    best = {mask: (mask & found[0], 0) for mask in found[1:]}
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
