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
from synth.mrf.elimination import MAX_TOGETHER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Level
    from synth.mrf import Model


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

    def coarsened(
        self, asked: Sequence[tuple[NDArray[np.float64], Clique, Clique]]
    ) -> list[NDArray[np.float64]]:
        """Of each (values, source, target), the marginal of `target` from that of `source`, flat both; of all
        alike at once."""
        sizes, found = self._grid.sizes, [values for values, _, _ in asked]
        alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for place, (_, source, target) in enumerate(asked):
            if source != target:
                shape = tuple(
                    (sizes[a], sizes[b] if a != b else 0) for a, b in zip(source, target, strict=True)
                )
                alike.setdefault(shape, []).append(place)
        for axes, places in alike.items():
            together = max(1, MAX_TOGETHER // prod(fine for fine, _ in axes))
            for start in range(0, len(places), together):
                some = places[start : start + together]
                for place, values in zip(some, self._summed(axes, [asked[n] for n in some]), strict=True):
                    found[place] = values
        return found

    def _summed(
        self, axes: Sequence[tuple[int, int]], asked: Sequence[tuple[NDArray[np.float64], Clique, Clique]]
    ) -> NDArray[np.float64]:
        """As `coarsened`, a row each, of cliques of one shape. axes: values of the source, bins of the target
        (0: the same)."""
        values, shape = np.stack([of for of, _, _ in asked]), [fine for fine, _ in axes]
        for axis, (_, coarse) in enumerate(axes):
            if coarse:
                sums = np.stack([self._matrix(source[axis], target[axis]) for _, source, target in asked])
                rows = values.reshape(len(asked), prod(shape[:axis]), shape[axis], -1)
                values = np.matmul(sums[:, None], rows)
                shape[axis] = coarse
        return values.reshape(len(asked), -1)

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
    return resolutions.coarsened([(tables[c.columns], finest[c.columns], c.clique) for c in candidates])
