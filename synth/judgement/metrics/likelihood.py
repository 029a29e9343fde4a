"""How probable real rows are under a model: the mean negative log-likelihood of rows kept apart, in nats.

OFFLINE ONLY, like every metric here. A junction tree's distribution is the product of its nodes' marginals
over that of its separators' (FLAIM's NLL; no smoothing: a row in a cell that the model holds impossible is
infinitely improbable, and `FLOOR` stands for its probability).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.mrf import Model

FLOOR = 1e-300
"""What a probability counts as at least."""


def mean_nll(model: Model, codes: NDArray[np.integer[Any]]) -> float:
    """Mean of -ln p(row) over rows of codes, (rows, columns in the model's order). Raises `ValueError`
    without rows."""
    if not len(codes):
        raise ValueError("A likelihood needs at least one row.")
    tree, names = model.tree, list(model.sizes)
    total = np.zeros(len(codes))
    for cliques, sign in ((tree.nodes, 1), (tree.separators, -1)):
        named = [clique for clique in cliques if clique]
        for clique, marginal in zip(named, model.marginals(named), strict=True):
            shape = [model.sizes[name] for name in clique]
            cells = np.ravel_multi_index([codes[:, names.index(name)] for name in clique], shape)
            total += sign * np.log(np.maximum(marginal[cells] / model.total, FLOOR))
    return float(-total.mean())
