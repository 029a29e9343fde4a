"""What PrivMRF makes of the noisy dependences: a graph, its junction tree, and which marginals inside it to
ask.

Everything here is a function of released values and public sizes: it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from mpc_protocols.functionality import Clique
from synth.mrf import SizeEstimator
from synth.mrf.junction_tree import junction_tree


def dependent_pairs(
    sizes: Mapping[str, int],
    dependence: Mapping[Clique, float],
    max_model_mb: float,
    first: Sequence[Clique] = (),
) -> list[Clique]:
    """Pairs, the most dependent first, as long as the junction tree of their graph stays within the limit.
    first: pairs of the graph that stand before them."""
    accepted = list(first)
    size = SizeEstimator(sizes, accepted)
    for pair in sorted(dependence, key=lambda pair: -dependence[pair]):
        if dependence[pair] <= 0:
            break
        if size.with_clique(pair) <= max_model_mb:
            accepted.append(pair)
            size = SizeEstimator(sizes, accepted)
    return accepted


def nodes_of(sizes: Mapping[str, int], pairs: Sequence[Clique]) -> list[frozenset[str]]:
    """The maximal cliques of the graph's triangulation that join two columns or more."""
    return [frozenset(node) for node in junction_tree(sizes, pairs).nodes if len(node) > 1]


def inside(nodes: Sequence[frozenset[str]], cliques: Iterable[Clique]) -> list[Clique]:
    """The cliques whose columns all lie in one node."""
    return [clique for clique in cliques if any(node.issuperset(clique) for node in nodes)]


def first_marginals(
    names: Sequence[str],
    nodes: Sequence[frozenset[str]],
    dependence: Mapping[Clique, float],
    useful: Collection[Clique],
) -> list[Clique]:
    """For each column the useful marginal that says most about it; duplicates once.

    Inside each node of the column, columns are added to it greedily by the merit of a set P of k parents of
    a, sum_i r(a, i) / sqrt(k + sum_{i<j} r(i, j)), where r is the dependence as a share of the rows:
    dependent on a, and not on one another. dependence: r of each pair. useful: marginals large enough to be
    seen through their noise.
    """
    offered = {frozenset(clique): clique for clique in useful}
    between = {frozenset(pair): max(0.0, value) for pair, value in dependence.items()}

    def merit(column: str, parents: Sequence[str]) -> float:
        redundant = sum(between.get(frozenset(pair), 0.0) for pair in combinations(parents, 2))
        return sum(between.get(frozenset((column, each)), 0.0) for each in parents) / math.sqrt(
            len(parents) + redundant
        )

    def grown(column: str, node: frozenset[str]) -> Iterator[tuple[float, tuple[str, ...]]]:
        parents: tuple[str, ...] = ()
        while choices := [
            (merit(column, (*parents, name)), (*parents, name))
            for name in names
            if name in node
            and name != column
            and name not in parents
            and frozenset((column, *parents, name)) in offered
        ]:
            best = max(choices, key=lambda choice: choice[0])
            yield best
            parents = best[1]

    found: dict[Clique, None] = {}
    for column in names:
        sets = [each for node in nodes if column in node for each in grown(column, node)]
        if sets and (best := max(sets, key=lambda each: each[0]))[0] > 0:
            found[offered[frozenset((column, *best[1]))]] = None
    return list(found)
