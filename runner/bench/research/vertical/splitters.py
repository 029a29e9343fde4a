"""How columns are dealt to two owners: VertiBench's splitters (Wu and others, ICLR 2024), as VertiMRF's paper
uses them.

importance     each column goes to an owner by chances that are drawn from Dirichlet(alpha, alpha): unequal owners below 1
correlation    of `HALVES` random halves, ordered by the mean absolute correlation of columns of different owners, the one at
               the quantile beta. VertiBench looks for the extremes by a genetic search, which finds somewhat wider ones
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

HALVES: Final = 400


def by_importance(names: Sequence[str], alpha: float, rng: np.random.Generator) -> tuple[str, ...]:
    """The first owner's columns: at least one, and not all."""
    while True:
        share = rng.dirichlet((alpha, alpha))[0]
        first = tuple(
            name for name, drawn in zip(names, rng.random(len(names)), strict=True) if drawn < share
        )
        if 0 < len(first) < len(names):
            return first


def by_correlation(
    names: Sequence[str], codes: NDArray[np.int64], beta: float, rng: np.random.Generator
) -> tuple[str, ...]:
    """The first owner's columns: half of them. codes: (rows, columns). beta: 0, owners least correlated, to
    1, most."""
    correlations: NDArray[Any] = np.abs(np.corrcoef(codes, rowvar=False))
    halves = [np.sort(rng.permutation(len(names))[: -(-len(names) // 2)]) for _ in range(HALVES)]
    halves.sort(key=lambda first: correlations[np.ix_(first, np.setdiff1d(range(len(names)), first))].mean())
    return tuple(names[place] for place in halves[round(beta * (HALVES - 1))])
