"""A graphical model of the generator's table, so that a finished run can be asked for more rows or a
marginal: of each owner's columns the tree of the most dependent pairs (Chow and Liu 1968), owners
independent. Post-processing of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from mpc_protocols.functionality import MAX_CELLS
from synth.mrf import Measurement, Model, fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique
    from synth.research.vertigan.plan import VertiGanPlan


def summary(table: NDArray[np.int64], plan: VertiGanPlan, total: float) -> Model:
    """A model of so many rows. table: codes, (rows, columns in domain order)."""
    sizes, places = plan.domain.sizes, {name: i for i, name in enumerate(plan.domain.names)}

    def counts(clique: Clique) -> NDArray[np.float64]:
        shape = tuple(sizes[name] for name in clique)
        cells = np.ravel_multi_index(tuple(table[:, places[name]] for name in clique), shape)
        found = np.bincount(cells, minlength=int(np.prod(shape)))
        return np.asarray(found * (total / max(1, len(table))), np.float64)

    def edges(columns: Clique) -> Iterator[tuple[str, str, float]]:
        for pair in combinations(columns, 2):
            if sizes[pair[0]] * sizes[pair[1]] <= MAX_CELLS:
                yield *pair, _information(counts(pair).reshape([sizes[name] for name in pair]))

    cliques: list[Clique] = list(plan.one_way)
    for owner in plan.owner_names:
        graph = nx.Graph()
        graph.add_weighted_edges_from(edges(plan.columns_of(owner)))
        cliques += sorted(
            tuple(sorted(pair, key=places.__getitem__))
            for pair in nx.maximum_spanning_edges(graph, data=False)
        )
    return fit(sizes, [Measurement(clique, counts(clique), 1.0) for clique in cliques], total=total)


def _information(joint: NDArray[np.float64]) -> float:
    """Mutual information of two columns, in nats."""
    share = joint / max(joint.sum(), 1e-300)
    apart = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    there = share > 0
    return float((share[there] * np.log(share[there] / apart[there])).sum())
