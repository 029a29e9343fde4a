"""A study of three columns with many small clients, for tests of FLAIM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, LocalCounts
from synth.algorithms.flaim.config import FlaimConfig
from synth.algorithms.flaim.plan import FlaimPlan, plan
from synth.domain import Codes, Domain
from synth.workload import Workload

DOMAIN = Domain(("a", "b", "c"), (Codes(2), Codes(3), Codes(2)))
WORKLOAD = Workload.from_spec({"degree": 2}, DOMAIN)
SESSION = b"s" * 32


def planned(variant: str = "private", epsilon: float = 2.0, **options: Any) -> FlaimPlan:
    """A plan of this study."""
    config = FlaimConfig(variant=variant, **options)
    made = plan(DOMAIN, WORKLOAD, config, epsilon=epsilon, delta=1e-5, adjacency="add-remove")
    return replace(made, max_rows=4096)


def counter(rows: NDArray[np.int64]) -> LocalCounts:
    """The marginals of rows of codes."""

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        found = []
        for clique in cliques:
            shape = [DOMAIN.sizes[name] for name in clique]
            codes = [rows[:, DOMAIN.names.index(name)] for name in clique]
            flat = np.ravel_multi_index(codes, shape) if len(rows) else np.zeros(0, np.int64)
            found.append(np.bincount(flat, minlength=int(np.prod(shape))).astype(np.int64))
        return found

    return counts


def table(rows: int, seed: int) -> NDArray[np.int64]:
    """Rows whose first two columns depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, rows)
    return np.stack([a, np.where(rng.random(rows) < 0.9, 2 * a, 1), rng.integers(0, 2, rows)], axis=1)
