"""A calibrated junction tree: what each node and each separator says, and through which neighbour a node hears
of a column that it does not hold.

Columns may stand at several levels (`synth/mrf/levels.py`): a node holds every level that is as coarse as its own or coarser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains
from synth.mrf.marginals.tables import Table, Tables

Edge = tuple[int, int]
"""Two neighbours: what the first knows beyond the second, given their separator."""


class CalibratedTree:
    """A tree given the conditional of each node given its separator.

    beliefs: expected counts of each node. near: of each node its neighbours, with their separators. finest: of each
    node, the levels of its columns. masks: its bits (`columns`). holders: of each column, the nodes that hold it.
    part_of_node, part_of: of each node and of each name, the connected part of the tree.
    """

    def __init__(
        self, tree: JunctionTree, chains: Chains, total: float, conditionals: Sequence[Array]
    ) -> None:
        """chains: of all levels that may be asked for, those of the tree among them."""
        self.chains, self.sizes = chains, chains.sizes
        self.columns = chains.columns()
        self.tables = Tables(chains, tree.nodes)
        self.near: list[dict[int, Clique]] = [{} for _ in tree.nodes]
        self.beliefs: list[Table] = []
        self.finest = [chains.finest(node) for node in tree.nodes]
        self._conditionals: dict[
            Edge, Table
        ] = {}  # (node, neighbour): the node's table given their separator
        self.masks = [self.columns.mask(node) for node in tree.nodes]
        self.holders: dict[str, list[int]] = {}  # of each column, the nodes that hold it
        part: dict[str, int] = {}  # of each column
        self.part_of_node = part_of = list[int]()
        for index, (node, parent, separator) in enumerate(
            zip(tree.nodes, tree.parents, tree.separators, strict=True)
        ):
            if separator:
                part_of.append(part_of[parent])
                separator = self.near[index][parent] = self.near[parent][index] = self.tables.order(separator)
                table = self._conditionals[index, parent] = self.tables.arranged(node, conditionals[index])
                outer = self.tables.project(self.beliefs[parent], separator)
                self.beliefs.append(
                    Table(table.columns, table.values * chains.lifted(outer.values, separator, table.columns))
                )
            else:
                part_of.append(index)
                self.beliefs.append(self.tables.arranged(node, conditionals[index] * total))
            for column in self.finest[index]:
                self.holders.setdefault(column, []).append(index)
                part[column] = part_of[index]
        self.part_of = {name: part[column] for name, column in chains.column.items() if column in part}
        self._reach = self._directions()
        self._leads: list[dict[str, int]] = [{} for _ in tree.nodes]

    def _directions(self) -> list[dict[str, list[tuple[int, int]]]]:
        """For each node and each column that some other node holds: (rank of the finest level held, neighbour
        that leads there), of every neighbour that does.

        Nodes that hold a level, or a finer one, are connected: of several neighbours only one leads to finer
        levels.
        """
        rank, near = self.chains.rank, self.near
        held = [{column: rank[name] for column, name in of.items()} for of in self.finest]
        beyond: dict[Edge, dict[str, int]] = {}  # of an edge, from one end to the other, behind it

        def add(of: Edge) -> None:
            """What the node at the end of an edge holds, and all that is further on."""
            before, first = of
            found = beyond[of] = dict(held[first])
            for other in near[first]:
                if other != before:
                    for column, most in beyond[first, other].items():
                        if most > found.get(column, -1):
                            found[column] = most

        # Parents stand before their children: what is below an edge is known from the last node on, what is
        # above it from the first on.
        above = [min(around, default=index) for index, around in enumerate(near)]
        linked = [index for index, parent in enumerate(above) if parent < index]
        for index in reversed(linked):
            add((above[index], index))
        for index in linked:
            add((index, above[index]))
        reach: list[dict[str, list[tuple[int, int]]]] = [{} for _ in near]
        for (start, first), columns in beyond.items():
            for column, most in columns.items():
                reach[start].setdefault(column, []).append((most, first))
        return reach

    def holds(self, node: int, name: str) -> bool:
        """Whether the node's table has the column at this level or a finer one."""
        own = self.finest[node].get(self.chains.column[name])
        return own is not None and self.chains.rank[own] >= self.chains.rank[name]

    def conditional(self, node: int, towards: int) -> Table:
        """The node's distribution given its separator towards a neighbour (0 where the separator has no
        mass)."""
        table = self._conditionals.get((node, towards))
        if table is None:
            belief, separator = self.beliefs[node], self.near[node][towards]
            outer = self.tables.project(belief, separator)
            mass = self.chains.lifted(outer.values, separator, belief.columns)
            values = np.divide(belief.values, mass, out=np.zeros_like(belief.values), where=mass > 0)
            table = self._conditionals[node, towards] = Table(belief.columns, values)
        return table

    def by_neighbour(self, node: int, wanted: Iterable[str]) -> dict[int, list[str]]:
        """Of the wanted columns that the node does not hold, the neighbour through which it hears of each."""
        leads = self._leads[node]
        found: dict[int, list[str]] = {}
        for name in wanted:
            lead = leads.get(name)
            if lead is None:
                lead = leads[name] = self.lead(node, name)
            if lead != node:
                found.setdefault(lead, []).append(name)
        return found

    def lead(self, node: int, name: str) -> int:
        """The neighbour that leads to a column, or the node itself where it holds that."""
        if self.holds(node, name):
            return node
        rank, column = self.chains.rank[name], self.chains.column[name]
        return next(first for most, first in self._reach[node][column] if most >= rank)
