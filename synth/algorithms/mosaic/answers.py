"""The model's answers for all candidates of a pass.

A candidate's marginal is a sum of the finest one of its columns, so each set of columns is asked of the model
once. Sums over bins are products with 0/1 matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from synth.algorithms.mosaic.candidates import Candidate, Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Level
    from synth.mrf import Model

Array = "NDArray[np.float64]"


class Resolutions:
    """Sums from one resolution of a column to a coarser one."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._levels: Mapping[str, Level] = grid.levels
        self._sums: dict[tuple[str, str], NDArray[np.float64]] = {}

    def finest(self, candidates: Iterable[Candidate]) -> dict[Clique, Clique]:
        """Of each set of columns, the coarsest clique that all its candidates are sums of."""
        sizes = self._grid.sizes
        found: dict[Clique, Clique] = {}
        for candidate in candidates:
            known = found.get(candidate.columns, candidate.clique)
            found[candidate.columns] = tuple(
                a if sizes[a] >= sizes[b] else b for a, b in zip(known, candidate.clique, strict=True)
            )
        return found

    def coarsened(self, values: NDArray[np.float64], source: Clique, target: Clique) -> NDArray[np.float64]:
        """The marginal of `target` from that of `source`, both flat."""
        shape = [self._grid.sizes[name] for name in source]
        for axis, (fine, coarse) in enumerate(zip(source, target, strict=True)):
            if fine != coarse:
                sums = self._matrix(fine, coarse)
                values = np.matmul(sums, values.reshape(prod(shape[:axis]), shape[axis], -1))
                shape[axis] = len(sums)
        return values.reshape(-1)

    def _matrix(self, fine: str, coarse: str) -> NDArray[np.float64]:
        known = self._sums.get((fine, coarse))
        if known is None:
            to = np.array(self._levels[coarse].bins)
            by = np.array(self._levels[fine].bins) if fine in self._levels else np.arange(len(to))
            known = np.zeros((self._levels[coarse].size, int(by.max()) + 1))
            known[to, by] = 1.0
            self._sums[fine, coarse] = known
        return known


def answers(
    model: Model, candidates: Sequence[Candidate], resolutions: Resolutions
) -> list[NDArray[np.float64]]:
    """The model's counts of each candidate, flat."""
    finest = resolutions.finest(candidates)
    tables = dict(zip(finest, model.marginals(finest.values()), strict=True))
    return [resolutions.coarsened(tables[c.columns], finest[c.columns], c.clique) for c in candidates]
