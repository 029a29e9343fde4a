"""Marginals of any columns of a calibrated junction tree, exactly, by variable elimination along the tree.

Problem: AIM compares the model with about 160 candidate marginals each round, most of which lie in no clique
of the model. For such a set the needed part of the tree is summed out from its ends: what a subtree says
about the wanted columns W it holds, given the separator S towards the asker, is P(W | S). It depends on the
directed edge and on W only, not on the rest of the query, so it is kept: all the pairs and triples that reach
a column through the same separator share it. It is kept as factors (lazy propagation): a factor that depends
on part of S only is passed on as it is and multiplied in last, small; on a 3 MiB model of Adult this answers
64 triples in 0.13 s instead of 2. How tables are multiplied and summed: `tables.py`.

Columns of different connected parts of the model are independent, so what is asked of several parts is an
outer product of what each says of its own. Of many sets the largest are answered first: a smaller one inside
is a sum.

Columns may stand at different levels (`levels.py`): a table has one axis a column, at one level; a product
has the finest one that both need. A fine column that hangs off its coarse level as a leaf is expanded last,
when all else is summed out: the joint marginal of the coarse levels times P(value | bin).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np

from synth.mrf.factor import Array, aligned
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains
from synth.mrf.tables import MAX_TABLE_CELLS, Table, Tables

CHEAP_SUM = 2**16  # cells that are summed in less time than a few steps through the tree take
MAX_TOGETHER = 2**18  # cells that are made at once, of many small marginals
MAX_SUBSETS = 5  # columns of a table whose subsets are kept in mind


class Marginals:
    """Exact marginals (expected counts) of a tree given the conditional of each node given its separator."""

    def __init__(
        self, tree: JunctionTree, chains: Chains, total: float, conditionals: Sequence[Array]
    ) -> None:
        """chains: of all levels that may be asked for, those of the tree among them."""
        self._chains, self._sizes, self._total = chains, chains.sizes, total
        self._columns = chains.columns()
        self._tables = Tables(chains, tree.nodes)
        self._near: list[dict[int, Clique]] = [{} for _ in tree.nodes]
        self._beliefs: list[Table] = []
        self._finest = [chains.finest(node) for node in tree.nodes]
        self._conditionals: dict[
            tuple[int, int], Table
        ] = {}  # (node, neighbour): the node's table given their separator
        self._masks = [self._columns.mask(node) for node in tree.nodes]
        self._holders: dict[str, list[int]] = {}  # of each column, the nodes that hold it
        self._part: dict[str, int] = {}  # of each column, the connected part of the tree
        self._parts = part_of = list[int]()
        for index, (node, parent, separator) in enumerate(
            zip(tree.nodes, tree.parents, tree.separators, strict=True)
        ):
            if separator:
                part_of.append(part_of[parent])
                separator = self._near[index][parent] = self._near[parent][index] = self._tables.order(
                    separator
                )
                table = self._conditionals[index, parent] = self._tables.arranged(node, conditionals[index])
                outer = self._tables.project(self._beliefs[parent], separator)
                self._beliefs.append(
                    Table(table.columns, table.values * chains.lifted(outer.values, separator, table.columns))
                )
            else:
                part_of.append(index)
                self._beliefs.append(self._tables.arranged(node, conditionals[index] * total))
            for column in self._finest[index]:
                self._holders.setdefault(column, []).append(index)
                self._part[column] = part_of[index]
        self._part_of = {
            name: self._part[column] for name, column in chains.column.items() if column in self._part
        }
        # Of each column, the finest level that shares a table with another column: what is finer depends on
        # that alone.
        self._core = chains.finest(*(node for node in tree.nodes if len(node) > 1))
        self._core_name = {
            name: chains.coarser_of(name, self._core[column])
            for name, column in chains.column.items()
            if column in self._core
        }
        self._expansions: dict[str, Array] = {}
        self._columns_kept: dict[str, Array] = {}
        self._reach = self._directions()
        self._leads: list[dict[str, int]] = [{} for _ in tree.nodes]
        self._carried: dict[tuple[int, int, frozenset[str]], list[Table]] = {}

    def _directions(self) -> list[dict[str, list[tuple[int, int]]]]:
        """For each node and each column that some other node holds: (rank of the finest level held, neighbour
        that leads there), of every neighbour that does.

        Nodes that hold a level, or a finer one, are connected: of several neighbours only one leads to finer
        levels.
        """
        rank, near = self._chains.rank, self._near
        held = [{column: rank[name] for column, name in of.items()} for of in self._finest]
        beyond: dict[tuple[int, int], dict[str, int]] = {}  # of an edge, from one end to the other, behind it

        def add(of: tuple[int, int]) -> None:
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

    def _holds(self, node: int, name: str) -> bool:
        """Whether the node's table has the column at this level or a finer one."""
        own = self._finest[node].get(self._chains.column[name])
        return own is not None and self._chains.rank[own] >= self._chains.rank[name]

    def _conditional(self, node: int, towards: int) -> Table:
        """The node's distribution given its separator towards a neighbour (0 where the separator has no
        mass)."""
        table = self._conditionals.get((node, towards))
        if table is None:
            belief, separator = self._beliefs[node], self._near[node][towards]
            outer = self._tables.project(belief, separator)
            mass = self._chains.lifted(outer.values, separator, belief.columns)
            values = np.divide(belief.values, mass, out=np.zeros_like(belief.values), where=mass > 0)
            table = self._conditionals[node, towards] = Table(belief.columns, values)
        return table

    def _carry(self, node: int, towards: int, wanted: frozenset[str]) -> list[Table]:
        """Tables whose product is P(wanted | separator) as seen through the edge from `node` to `towards`.

        A table that depends on a few of the separator's columns only stays over those: it is multiplied in at
        the end, small.
        """
        key = (node, towards, wanted)
        carried = self._carried.get(key)
        if carried is None:
            chains = self._chains
            separator = chains.finest(self._near[node][towards])
            wanted_levels = chains.finest(wanted)

            def passes(table: Table) -> bool:
                return all(
                    (own := separator.get(chains.column[name])) is not None
                    and chains.rank[own] >= chains.rank[name]
                    for name in table.condition
                )

            tables = self._from_neighbours(node, wanted)
            carried = [table for table in tables if passes(table)]
            rest = [table for table in tables if not passes(table)]
            own = [name for name in wanted if self._holds(node, name)]
            if rest or own:
                carried_levels = [
                    wanted_levels[chains.column[name]]
                    for table in rest
                    for name in table.columns
                    if chains.column[name] in wanted_levels
                ]
                target = chains.finest(own, separator.values(), carried_levels)
                table = self._sum_out(self._conditional(node, towards), rest, target)
                carried.append(Table(table.columns, table.values, self._near[node][towards]))
            self._carried[key] = carried
        return carried

    def _meeting_point(self, wanted: frozenset[str]) -> int:
        """The node at which to bring together what the tree says of some columns of one part: what passes
        through a separator speaks of as few of them as may be (of one, of up to three columns: three nodes of
        a tree have a node between any two of them), so that others ask for it as well."""
        cells, mask = self._columns.cells, self._columns.mask(wanted)

        def best(places: Iterable[int]) -> int:
            """The one that holds most."""
            return min((-cells(mask & self._masks[at]), self._beliefs[at].values.size, at) for at in places)[
                -1
            ]

        def most(at: int) -> int:
            """Of how many columns a neighbour has to tell."""
            return max(map(len, self._by_neighbour(at, wanted).values()), default=0)

        found = best({at for name in wanted for at in self._holders[self._chains.column[name]]})
        if most(found) > 1:
            part = self._parts[found]
            told = {at: most(at) for at, other in enumerate(self._parts) if other == part}
            least = min(told.values())
            found = best(at for at, columns in told.items() if columns == least)
        return found

    def _by_neighbour(self, node: int, wanted: Iterable[str]) -> dict[int, list[str]]:
        """Of the wanted columns that the node does not hold, the neighbour through which it hears of each."""
        leads = self._leads[node]
        found: dict[int, list[str]] = {}
        for name in wanted:
            lead = leads.get(name)
            if lead is None:
                lead = leads[name] = self._lead(node, name)
            if lead != node:
                found.setdefault(lead, []).append(name)
        return found

    def _lead(self, node: int, name: str) -> int:
        """The neighbour that leads to a column, or the node itself where it holds that."""
        if self._holds(node, name):
            return node
        rank, column = self._chains.rank[name], self._chains.column[name]
        return next(first for most, first in self._reach[node][column] if most >= rank)

    def _from_neighbours(self, node: int, wanted: frozenset[str]) -> list[Table]:
        """What the neighbours of `node` know of the wanted columns that it does not hold, given their
        separators with it."""
        return [
            table
            for other, names in sorted(self._by_neighbour(node, wanted).items())
            for table in self._carry(other, node, frozenset(names))
        ]

    def _sum_out(self, table: Table, others: Sequence[Table], target: Mapping[str, str]) -> Table:
        """Product of `table` and `others`, summed down to `target`; next comes always the factor with the
        smallest result."""
        chains, others = self._chains, list(others)
        while len(others) > 1:
            sizes = []
            for index, other in enumerate(others):
                rest = (later.columns for later in others[:index] + others[index + 1 :])
                required = chains.finest(target.values(), *rest)
                joint = chains.finest(table.columns, other.columns)
                cells = prod(
                    self._sizes[chains.coarser_of(name, required[column])]
                    for column, name in joint.items()
                    if column in required
                )
                sizes.append((cells, index, required))
            _, index, required = min(sizes, key=lambda entry: entry[:2])
            table = self._tables.contract(table, others.pop(index), required)
        if others:
            return self._tables.contract(table, others[0], target)
        return self._tables.restricted(table, target)

    def marginals(self, cliques: Sequence[Clique]) -> list[Array]:
        """Expected counts over each clique (flat, row-major in the given order)."""
        cache: dict[frozenset[str], Table] = {}
        results = self._independent_pairs(cliques)
        order = sorted(
            (n for n in range(len(cliques)) if n not in results), key=lambda place: -len(cliques[place])
        )
        results |= {place: self._expanded(cliques[place], cache) for place in order}
        return [results[place] for place in range(len(cliques))]

    def _independent_pairs(self, cliques: Sequence[Clique]) -> dict[int, Array]:
        """Of those cliques that are two independent columns, by their places: what `_product_of_columns`
        makes, of all alike at once."""
        alike: dict[tuple[int, int], list[int]] = {}
        for place, clique in enumerate(cliques):
            if len(clique) == 2 and self._are_independent(clique):
                alike.setdefault((self._sizes[clique[0]], self._sizes[clique[1]]), []).append(place)
        results: dict[int, Array] = {}
        for (rows, columns), places in alike.items():
            together = max(1, MAX_TOGETHER // (rows * columns))
            for start in range(0, len(places) if rows * columns <= MAX_TABLE_CELLS else 0, together):
                some = places[start : start + together]
                left = np.concatenate([self._column(cliques[place][0]) for place in some])
                right = np.concatenate([self._column(cliques[place][1]) for place in some]) / self._total
                products = left.reshape(-1, rows, 1) * right.reshape(-1, 1, columns)
                results |= zip(some, products.reshape(len(some), -1), strict=True)
        return results

    def _expanded(self, clique: Clique, cache: dict[frozenset[str], Table]) -> Array:
        """One of `marginals`: at the levels at which its columns meet others, then expanded to its own."""
        chains = self._chains
        if len(clique) > 1 and self._are_independent(clique):
            return self._product_of_columns(clique)
        core_clique = tuple(self._core_name.get(name, name) for name in clique)
        if core_clique == clique or len(clique) < 2:
            return self._marginal(clique, cache)
        if (cells := prod(self._sizes[name] for name in clique)) > MAX_TABLE_CELLS:
            raise ValueError(
                f"This marginal needs a table of {cells} cells over ({', '.join(clique)}); ask for fewer columns."
            )
        values = self._marginal(core_clique, cache).reshape([self._sizes[name] for name in core_clique])
        for axis in range(
            len(clique) - 1, -1, -1
        ):  # the last first: then the long copies are of whole blocks
            core, name = core_clique[axis], clique[axis]
            if core != name:
                values = values.take(chains.bins(name, core), axis=axis, mode="clip")
                values *= self._expansion(name, core).reshape([-1, *[1] * (len(clique) - 1 - axis)])
        return values.reshape(-1)

    def _are_independent(self, clique: Clique) -> bool:
        """Whether the model says that all of these columns are independent: each is of a part of its own."""
        parts = {self._part_of.get(name, -1) for name in clique}
        return len(parts) == len(clique) and -1 not in parts

    def _product_of_columns(self, clique: Clique) -> Array:
        """One of `marginals`, of independent columns."""
        if (cells := prod(self._sizes[name] for name in clique)) > MAX_TABLE_CELLS:
            raise ValueError(
                f"This marginal needs a table of {cells} cells over ({', '.join(clique)}); ask for fewer columns."
            )
        values, *others = (self._column(name) for name in clique)
        for other in others:
            values = np.multiply.outer(values, other / self._total).reshape(-1)
        return values

    def _column(self, name: str) -> Array:
        """Expected counts of one column, or level; kept."""
        known = self._columns_kept.get(name)
        if known is None:
            known = self._columns_kept[name] = self._marginal((name,), {})
        return known

    def _expansion(self, name: str, core: str) -> Array:
        """P(value at this level | its bin at the level at which its column meets others)."""
        shares = self._expansions.get(name)
        if shares is None:
            own = self._column(name)
            bins = self._chains.bins(name, core)
            mass = np.bincount(bins, own, self._sizes[core])[bins]
            shares = self._expansions[name] = np.divide(own, mass, out=np.zeros_like(own), where=mass > 0)
        return shares

    def _marginal(self, clique: Clique, cache: dict[frozenset[str], Table]) -> Array:
        """One of `marginals`. cache: of some sets inside a part, a table that holds them."""
        if not all(name in self._sizes for name in clique) or len(
            {self._chains.column[name] for name in clique}
        ) != len(clique):
            raise ValueError(f"({', '.join(clique)}) must name columns of the domain, each once.")
        live = tuple(name for name in clique if self._sizes[name] > 1)
        by_part: dict[int, list[str]] = {}
        for name in live:
            by_part.setdefault(self._part[self._chains.column[name]], []).append(name)
        tables = [self._inside(frozenset(names), cache) for names in by_part.values()]
        if len(tables) == 1:
            (table,) = tables
            values = self._tables.project(table, self._tables.order(live)).values
            return aligned(values, self._tables.order(live), live).flatten()
        if (cells := prod(self._sizes[name] for name in live)) > MAX_TABLE_CELLS:
            raise ValueError(
                f"This marginal needs a table of {cells} cells over ({', '.join(live)}); ask for fewer columns."
            )
        if not tables:
            return np.array([self._total])
        product = aligned(tables[0].values, tables[0].columns, live)
        for table in tables[1:]:
            product = product * aligned(table.values / self._total, table.columns, live)
        return product.reshape(-1)

    def _inside(self, wanted: frozenset[str], cache: dict[frozenset[str], Table]) -> Table:
        """Expected counts over columns of one part: from a larger table, if a small one was made, or from the
        tree."""
        larger = cache.get(wanted)
        if larger is not None and (len(larger.columns) == len(wanted) or larger.values.size <= CHEAP_SUM):
            cache[wanted] = self._tables.project(
                larger, tuple(name for name in larger.columns if name in wanted)
            )
            return cache[wanted]
        node = self._meeting_point(wanted)
        table = self._sum_out(
            self._beliefs[node], self._from_neighbours(node, wanted), self._chains.finest(wanted)
        )
        cache[wanted] = table
        for count in range(1, len(wanted) if len(wanted) <= MAX_SUBSETS else 0):
            for subset in map(frozenset, combinations(wanted, count)):
                other = cache.get(subset)
                if other is None or (len(other.columns) > count and other.values.size > table.values.size):
                    cache[subset] = table
        return table
