"""The released model as networkx graphs: which columns it connects, and the junction tree in which it
reasons.

Both are functions of what a run has released, and cost no further budget. Attributes are plain numbers and
texts, so that NetworkX's write_graphml and the programs that read GraphML (Gephi, Cytoscape, yEd, igraph)
take them as they are.

    attribute graph   a node per column: kind, values (missing included); an edge between columns that a measured clique holds
                      together: measured (how many hold both), mutual_information (of the model's two-way marginal, in nats),
                      cells (of the finest resolution at which one holds both: fewer than values x values over bins)
    junction tree     a node per maximal clique of the triangulated graph, named by its columns: columns, cells, measured (how
                      many measured cliques it holds); an edge per separator: separator, columns, cells (none: independent
                      parts). A column that a clique holds over bins is named by its level, as in `measurements.json`.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.process.foreign_text import printable
from mpc_protocols.process.later import Later
from runner.results.finished_run import FinishedRun
from synth.mrf import Chains

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray
else:
    nx = Later("networkx")


def attribute_graph(run: FinishedRun) -> nx.Graph:
    """The measured columns' graph, nodes in domain order; graph attributes: study, session, rows (the model's
    total)."""
    model, domain = run.model, run.domain
    chains = _chains(run)
    measured: dict[tuple[str, str], int] = {}
    cells: dict[tuple[str, str], int] = {}
    for clique in model.cliques:
        for one, other in combinations(clique, 2):
            pair = chains.column[one], chains.column[other]
            measured[pair] = measured.get(pair, 0) + 1
            cells[pair] = max(cells.get(pair, 0), chains.sizes[one] * chains.sizes[other])
    graph = nx.Graph(**_of(run))
    for name, column in zip(domain.names, domain.columns, strict=True):
        graph.add_node(name, kind=column.kind, values=domain.sizes[name])
    for pair, table in zip(measured, model.marginals(measured), strict=True):
        counts = table.reshape([domain.sizes[name] for name in pair])
        strength = _mutual_information(counts)
        graph.add_edge(*pair, measured=measured[pair], mutual_information=strength, cells=cells[pair])
    return graph


def junction_tree(run: FinishedRun) -> nx.Graph:
    """The model's junction tree; graph attributes: study, session, rows, cells (of all its cliques)."""
    model, chains = run.model, _chains(run)

    def cells_of(clique: tuple[str, ...]) -> int:
        return prod(chains.sizes[name] for name in clique)

    def holds(node: tuple[str, ...], clique: tuple[str, ...]) -> bool:
        finest = chains.finest(node)
        return all(
            chains.column[name] in finest and chains.rank[name] <= chains.rank[finest[chains.column[name]]]
            for name in clique
        )

    names = [_named(clique) for clique in model.tree.nodes]
    cells = [cells_of(clique) for clique in model.tree.nodes]
    graph = nx.Graph(**_of(run), cells=sum(cells))
    for name, clique, size in zip(names, model.tree.nodes, cells, strict=True):
        held = sum(holds(clique, each) for each in model.cliques)
        graph.add_node(name, columns=len(clique), cells=size, measured=held)
    for child, parent in enumerate(model.tree.parents):
        if parent >= 0:
            shared = model.tree.separators[child]
            graph.add_edge(
                names[parent],
                names[child],
                separator=_named(shared),
                columns=len(shared),
                cells=cells_of(shared),
            )
    return graph


def write(path: Path, graph: nx.Graph) -> None:
    """Write GraphML, whole or not at all. Raises `OSError`."""
    part = path.with_name(f".{path.name}.part")
    try:
        nx.write_graphml(graph, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _chains(run: FinishedRun) -> Chains:
    return Chains(run.domain.sizes, run.model.used_levels)


def _of(run: FinishedRun) -> dict[str, Any]:
    study = printable(str(run.facts["study"]), line=True)  # XML has no place for control characters
    return {"study": study, "session": str(run.facts["session"]), "rows": run.model.total}


def _named(columns: tuple[str, ...]) -> str:
    return " x ".join(columns)


def _mutual_information(counts: NDArray[np.float64]) -> float:
    """Of a two-way table, in nats; never below 0."""
    joint = counts / counts.sum()
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return max(0.0, float((joint[seen] * np.log(joint[seen] / apart[seen])).sum()))
