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
is a sum. Hundreds of pairs are answered side by side (`stacks.py`).

Columns may stand at different levels (`synth/mrf/levels.py`): a table has one axis a column, at one level; a product
has the finest one that both need. A fine column that hangs off its coarse level as a leaf is expanded last,
when all else is summed out: the joint marginal of the coarse levels times P(value | bin).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np

from synth.mrf.factor import Array, aligned
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains
from synth.mrf.marginals.calibrated import CalibratedTree
from synth.mrf.marginals.stacks import PairsAcross
from synth.mrf.marginals.tables import MAX_TABLE_CELLS, Table, check_cells

CHEAP_SUM = 2**16  # cells that are summed in less time than a few steps through the tree take
MAX_TOGETHER = 2**18  # cells that are made at once, of many small marginals
MANY_PAIRS = 256  # across the tree that are answered side by side
MAX_SUBSETS = 5  # columns of a table whose subsets are kept in mind


class Marginals:
    """Exact marginals (expected counts) of a tree given the conditional of each node given its separator."""

    def __init__(
        self, tree: JunctionTree, chains: Chains, total: float, conditionals: Sequence[Array]
    ) -> None:
        """chains: of all levels that may be asked for, those of the tree among them."""
        self._chains, self._sizes, self._total = chains, chains.sizes, total
        self._tree = CalibratedTree(tree, chains, total, conditionals)
        self._tables = self._tree.tables
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
        self._carried: dict[tuple[int, int, frozenset[str]], list[Table]] = {}

    def _carry(self, node: int, towards: int, wanted: frozenset[str]) -> list[Table]:
        """Tables whose product is P(wanted | separator) as seen through the edge from `node` to `towards`.

        A table that depends on a few of the separator's columns only stays over those: it is multiplied in at
        the end, small.
        """
        key = (node, towards, wanted)
        carried = self._carried.get(key)
        if carried is None:
            chains = self._chains
            separator = chains.finest(self._tree.near[node][towards])
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
            own = [name for name in wanted if self._tree.holds(node, name)]
            if rest or own:
                carried_levels = [
                    wanted_levels[chains.column[name]]
                    for table in rest
                    for name in table.columns
                    if chains.column[name] in wanted_levels
                ]
                target = chains.finest(own, separator.values(), carried_levels)
                table = self._sum_out(self._tree.conditional(node, towards), rest, target)
                carried.append(Table(table.columns, table.values, self._tree.near[node][towards]))
            self._carried[key] = carried
        return carried

    def _meeting_point(self, wanted: frozenset[str]) -> int:
        """The node at which to bring together what the tree says of some columns of one part: what passes
        through a separator speaks of as few of them as may be (of one, of up to three columns: three nodes of
        a tree have a node between any two of them), so that others ask for it as well."""
        cells, mask = self._tree.columns.cells, self._tree.columns.mask(wanted)

        def best(places: Iterable[int]) -> int:
            """The one that holds most."""
            return min(
                (-cells(mask & self._tree.masks[at]), self._tree.beliefs[at].values.size, at) for at in places
            )[-1]

        def most(at: int) -> int:
            """Of how many columns a neighbour has to tell."""
            return max(map(len, self._tree.by_neighbour(at, wanted).values()), default=0)

        found = best({at for name in wanted for at in self._tree.holders[self._chains.column[name]]})
        if most(found) > 1:
            part = self._tree.part_of_node[found]
            told = {at: most(at) for at, other in enumerate(self._tree.part_of_node) if other == part}
            least = min(told.values())
            found = best(at for at, columns in told.items() if columns == least)
        return found

    def _from_neighbours(self, node: int, wanted: frozenset[str]) -> list[Table]:
        """What the neighbours of `node` know of the wanted columns that it does not hold, given their
        separators with it."""
        return [
            table
            for other, names in sorted(self._tree.by_neighbour(node, wanted).items())
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

    def marginals(self, cliques: Sequence[Clique], side_by_side: bool = True) -> list[Array]:
        """Expected counts over each clique (flat, row-major in the given order).

        side_by_side: hundreds of pairs may be, whose last digits are others then.
        """
        cache: dict[frozenset[str], Table] = {}
        results = self._independent_pairs(cliques)
        if side_by_side:
            results |= self._pairs_across(cliques, results)
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

    def _pairs_across(self, cliques: Sequence[Clique], known: Container[int]) -> dict[int, Array]:
        """Of the cliques at places that are not known, the pairs of dependent columns that no node of the tree holds, where
        there are many; without those inside a larger clique, which are sums of that."""
        larger = {pair for clique in cliques if len(clique) > 2 for pair in combinations(clique, 2)}
        column, part = self._chains.column, self._tree.part_of
        cores: dict[int, Clique] = {}
        for place, clique in enumerate(cliques):
            if len(clique) == 2 and place not in known and clique not in larger:
                one, other = core = self._core_clique(clique)
                if part.get(one, -1) == part.get(other, -2) and column[one] != column[other]:
                    cores[place] = core
        if len(cores) < MANY_PAIRS:
            return {}
        found = PairsAcross(self._tree).marginals(list(cores.values()))
        return {
            place: self._at_own_levels(cliques[place], core, found[core])
            for place, core in cores.items()
            if core in found
        }

    def _expanded(self, clique: Clique, cache: dict[frozenset[str], Table]) -> Array:
        """One of `marginals`: at the levels at which its columns meet others, then expanded to its own."""
        if len(clique) > 1 and self._are_independent(clique):
            return self._product_of_columns(clique)
        core_clique = self._core_clique(clique)
        if core_clique == clique or len(clique) < 2:
            return self._marginal(clique, cache)
        check_cells(self._sizes, clique)
        return self._at_own_levels(clique, core_clique, self._marginal(core_clique, cache))

    def _core_clique(self, clique: Clique) -> Clique:
        """The levels at which its columns meet others."""
        return tuple(self._core_name.get(name, name) for name in clique)

    def _at_own_levels(self, clique: Clique, core_clique: Clique, values: Array) -> Array:
        """What is flat over `core_clique`, expanded to `clique`."""
        if clique == core_clique:
            return values
        values = values.reshape([self._sizes[name] for name in core_clique])
        for axis in range(
            len(clique) - 1, -1, -1
        ):  # the last first: then the long copies are of whole blocks
            core, name = core_clique[axis], clique[axis]
            if core != name:
                values = values.take(self._chains.bins(name, core), axis=axis, mode="clip")
                values *= self._expansion(name, core).reshape([-1, *[1] * (len(clique) - 1 - axis)])
        return values.reshape(-1)

    def _are_independent(self, clique: Clique) -> bool:
        """Whether the model says that all of these columns are independent: each is of a part of its own."""
        parts = {self._tree.part_of.get(name, -1) for name in clique}
        return len(parts) == len(clique) and -1 not in parts

    def _product_of_columns(self, clique: Clique) -> Array:
        """One of `marginals`, of independent columns."""
        check_cells(self._sizes, clique)
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
            by_part.setdefault(self._tree.part_of[name], []).append(name)
        tables = [self._inside(frozenset(names), cache) for names in by_part.values()]
        if len(tables) == 1:
            (table,) = tables
            values = self._tables.project(table, self._tables.order(live)).values
            return aligned(values, self._tables.order(live), live).flatten()
        check_cells(self._sizes, live)
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
            self._tree.beliefs[node], self._from_neighbours(node, wanted), self._chains.finest(wanted)
        )
        cache[wanted] = table
        for count in range(1, len(wanted) if len(wanted) <= MAX_SUBSETS else 0):
            for subset in map(frozenset, combinations(wanted, count)):
                other = cache.get(subset)
                if other is None or (len(other.columns) > count and other.values.size > table.values.size):
                    cache[subset] = table
        return table
