"""Marginals of many pairs of columns across a junction tree, by products of matrices.

Problem: of a wide table thousands of pairs lie in no table of the model, and `elimination.py` multiplies two small tables for
each of them at each step of its way: a third of a millisecond a pair, most of it spent on finding out which axes to sum. All
columns that reach a node through the same separator take the same steps, so they are taken together: what the tree says of
columns b_1, b_2, ... given a separator's columns S is one matrix,

    P(b_1 | S) | P(b_2 | S) | ...        a row for each cell of S, columns side by side

which passes an edge as a product with a matrix of the node between, P(S | S'), or as it is where S' holds S (lazy propagation,
as there). A pair is brought together at the smallest node that holds one of the two, a: for all b_i behind one
separator of that node the answers are P(a, S) times the matrix.

Sums are added up in another order than pair by pair: the answers are the same but for their last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple, Protocol

import numpy as np

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique
from synth.mrf.levels import Chains
from synth.mrf.tables import Table, Tables

PAYS_FROM = 300
"""Pairs across the tree. Fewer, as of 25 columns, are answered one by one."""
MAX_VALUES = 64
"""Of a column: pairs of larger ones are few cells' overhead, and much memory together."""


class Tree(Protocol):
    """What `elimination.Marginals` knows of its tree."""

    @property
    def tables(self) -> Tables:
        """Whose order all tables have."""

    def holds(self, node: int, name: str) -> bool:
        """Whether the node's table has the column at this level or a finer one."""

    def lead(self, node: int, name: str) -> int:
        """The neighbour that leads to a column, or the node itself where it holds that."""

    def holders(self, name: str) -> Sequence[int]:
        """The nodes that hold the column at some level."""

    def belief(self, node: int) -> Table:
        """Expected counts of the node."""

    def conditional(self, node: int, towards: int) -> Table:
        """The node's distribution given its separator towards a neighbour."""

    def separator(self, node: int, towards: int) -> Clique:
        """What the two have in common."""


class _Said(NamedTuple):
    """What is known of columns given others. given: those; names: the columns; values: of shape (cells of `given`, all their
    values, one column's after the other)."""

    given: Clique
    names: Clique
    values: Array


class PairsAcross:
    """Pairs of columns of one part of the tree of which no node holds both; for one list of pairs."""

    def __init__(self, tree: Tree, chains: Chains) -> None:
        self._tree, self._chains = tree, chains
        self._homes: dict[str, int] = {}
        self._wanted: dict[tuple[int, int], dict[str, None]] = {}
        self._carried: dict[tuple[int, int], list[_Said]] = {}

    def are_across(self, pair: Clique) -> bool:
        """Whether two columns of one part are such a pair, of columns that are not too large."""
        one, other = pair
        sizes, tree = self._chains.sizes, self._tree
        return (
            1 < sizes[one] <= MAX_VALUES
            and 1 < sizes[other] <= MAX_VALUES
            and not any(tree.holds(node, one) and tree.holds(node, other) for node in tree.holders(one))
        )

    def marginals(self, pairs: Iterable[Clique]) -> dict[Clique, Array]:
        """Expected counts over each pair (flat, row-major in the given order)."""
        asked: dict[tuple[int, str], dict[str, Clique]] = {}
        for pair in pairs:
            near, far = sorted(pair, key=lambda name: (-self._chains.sizes[name], self._size_at_home(name)))
            asked.setdefault((self._home(near), near), {})[far] = pair
        for (node, _), others in asked.items():
            self._want(node, others)
        found: dict[Clique, Array] = {}
        for (node, name), others in asked.items():
            size = self._chains.sizes[name]
            for said in self._heard(node, others):
                counts = self._passed(self._tree.belief(node), said, (name,))
                start = 0
                for other in said.names:
                    stop = start + self._chains.sizes[other]
                    part, pair = counts[:, start:stop], others[other]
                    found[pair] = (part if pair[0] == name else part.T).reshape(size * (stop - start))
                    start = stop
        return found

    def _home(self, name: str) -> int:
        """The smallest node that holds the column at this level."""
        known = self._homes.get(name)
        if known is None:
            tree = self._tree
            places = [node for node in tree.holders(name) if tree.holds(node, name)]
            known = self._homes[name] = min(places, key=lambda node: (tree.belief(node).values.size, node))
        return known

    def _size_at_home(self, name: str) -> tuple[int, int, int]:
        home = self._home(name)
        return self._tree.belief(home).values.size, home, self._chains.rank[name]

    def _want(self, node: int, names: Iterable[str]) -> None:
        """Note of each edge on the ways to a node what is asked through it."""
        ahead = [(node, list(names))]
        while ahead:
            node, names = ahead.pop()
            led: dict[int, list[str]] = {}
            for name in names:
                if (lead := self._tree.lead(node, name)) != node:
                    led.setdefault(lead, []).append(name)
            for lead, behind in led.items():
                wanted = self._wanted.setdefault((lead, node), {})
                if fresh := [name for name in behind if name not in wanted]:
                    wanted |= dict.fromkeys(fresh)
                    ahead.append((lead, fresh))

    def _heard(self, node: int, names: Iterable[str]) -> list[_Said]:
        """What a node hears of those of these columns that it does not hold."""
        led: dict[int, set[str]] = {}
        for name in names:
            if (lead := self._tree.lead(node, name)) != node:
                led.setdefault(lead, set()).add(name)
        return [
            part
            for lead, wanted in sorted(led.items())
            for said in self._carry(lead, node)
            if (part := self._of(said, wanted)).names
        ]

    def _of(self, said: _Said, wanted: set[str]) -> _Said:
        """What is said of some columns."""
        if wanted.issuperset(said.names):
            return said
        sizes = self._chains.sizes
        of_wanted = np.repeat([name in wanted for name in said.names], [sizes[name] for name in said.names])
        names = tuple(name for name in said.names if name in wanted)
        return _Said(said.given, names, np.ascontiguousarray(said.values[:, of_wanted]))

    def _carry(self, node: int, towards: int) -> list[_Said]:
        """What passes an edge of the columns that are wanted through it: given columns of the separator, each."""
        known = self._carried.get((node, towards))
        if known is not None:
            return known
        chains, tree = self._chains, self._tree
        wanted, separator = self._wanted[node, towards], tree.separator(node, towards)
        levels = chains.finest(separator)

        def passes(given: Clique) -> bool:
            return all(
                (own := levels.get(chains.column[name])) is not None and chains.rank[own] >= chains.rank[name]
                for name in given
            )

        heard = self._heard(node, wanted)
        found = [said for said in heard if passes(said.given)]
        made: list[_Said] = []
        if len(found) < len(heard) or any(tree.holds(node, name) for name in wanted):
            table = tree.conditional(node, towards)
            made += [
                _Said(separator, said.names, self._passed(table, said, separator))
                for said in heard
                if not passes(said.given)
            ]
            made += [
                _Said(separator, (name,), self._matrix(table, separator, (name,)))
                for name in wanted
                if tree.holds(node, name)
            ]
        if made:
            names = tuple(name for said in made for name in said.names)
            found.append(_Said(separator, names, np.concatenate([said.values for said in made], axis=1)))
        self._carried[node, towards] = found
        return found

    def _passed(self, table: Table, said: _Said, target: Clique) -> Array:
        """The product of a node's table with what is said given columns of it, summed down to `target`: of shape (cells of
        `target`, values)."""
        shared = [name for name in target if name in said.given]
        column = self._chains.column
        if {column[name] for name in target} & {column[name] for name in said.given} != {
            column[name] for name in shared
        }:
            return self._matrix(table, target, said.given) @ said.values  # at different levels
        rows = [name for name in target if name not in shared]
        summed = [name for name in said.given if name not in shared]
        cells = [prod(self._chains.sizes[name] for name in names) for names in (shared, rows, summed)]
        joint = self._tree.tables.restricted(table, self._chains.finest(target, said.given))
        order = [joint.columns.index(name) for name in (*shared, *rows, *summed)]
        left = joint.values.transpose(order).reshape(cells)
        right = self._rearranged(said.values, said.given, (*shared, *summed)).reshape(cells[0], cells[2], -1)
        return self._rearranged(
            np.matmul(left, right).reshape(cells[0] * cells[1], -1), (*shared, *rows), target
        )

    def _rearranged(self, values: Array, names: Clique, target: Clique) -> Array:
        """Rows for the cells of `names` as rows for those of the same names in another order."""
        if names == target:
            return values
        shape = [self._chains.sizes[name] for name in names]
        order = [names.index(name) for name in target]
        return values.reshape([*shape, -1]).transpose([*order, len(names)]).reshape(len(values), -1)

    def _matrix(self, table: Table, rows: Clique, columns: Clique) -> Array:
        """A node's table summed down to two sets of its columns, which may have some in common, at any levels: of shape (cells
        of the one, cells of the other), 0 where they exclude each other."""
        chains = self._chains
        joint = self._tree.tables.restricted(table, chains.finest(rows, columns))
        shape = [prod(chains.sizes[name] for name in names) for names in (rows, columns)]
        places = chains.cells_of(rows, joint.columns) * shape[1] + chains.cells_of(columns, joint.columns)
        found = np.bincount(places, joint.values.reshape(-1), shape[0] * shape[1])
        return np.asarray(found, np.float64).reshape(shape)
