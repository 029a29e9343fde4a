"""Rows drawn from a junction tree so that clique marginals are those of the model to within rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from synth.mrf.factor import Array
from synth.mrf.junction_tree import JunctionTree


def sample_rows(tree: JunctionTree, sizes: Mapping[str, int], conditionals: Sequence[Array], rows: int, rng: np.random.Generator) -> np.ndarray:
    column = {name: index for index, name in enumerate(sizes)}
    out = np.zeros((rows, len(column)), dtype=np.int64)
    if rows == 0:
        return out
    for node, separator, conditional in zip(tree.nodes, tree.separators, conditionals, strict=True):
        given = np.zeros(rows, dtype=np.int64)
        for name in separator:
            given = given * sizes[name] + out[:, column[name]]
        rest = tuple(n for n in node if n not in separator)
        conditional = conditional.transpose([node.index(n) for n in separator + rest])
        table = conditional.reshape(int(np.prod([sizes[n] for n in separator])), -1)
        order = np.argsort(given + rng.random(rows), kind="stable")
        sorted_given = given[order]
        first = np.searchsorted(sorted_given, sorted_given, side="left")
        counts = np.searchsorted(sorted_given, sorted_given, side="right") - first
        rank = np.arange(rows) - first
        offset = rng.random(table.shape[0])[sorted_given]
        point = (rank + offset) / counts
        cumulative = np.cumsum(table, axis=1)
        cumulative /= cumulative[:, -1:]
        flat = (cumulative + np.arange(table.shape[0])[:, None]).reshape(-1)
        value = np.searchsorted(flat, sorted_given + point, side="right") - sorted_given * table.shape[1]
        value = np.clip(value, 0, table.shape[1] - 1)
        for name in reversed(rest):
            out[order, column[name]] = value % sizes[name]
            value = value // sizes[name]
    return out
