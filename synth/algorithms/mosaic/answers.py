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
from synth.mrf.marginals.elimination import MAX_TOGETHER

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
        self._finer: dict[tuple[Clique, Clique], Clique] = {}
        self._axes: dict[tuple[Clique, Clique], tuple[tuple[int, int], ...]] = {}

    def finest(self, candidates: Iterable[Candidate]) -> dict[Clique, Clique]:
        """Of each set of columns, the coarsest clique that all its candidates are sums of."""
        found: dict[Clique, Clique] = {}
        for candidate in candidates:
            known = found.get(candidate.columns)
            found[candidate.columns] = self._finest(known, candidate.clique) if known else candidate.clique
        return found

    def _finest(self, one: Clique, other: Clique) -> Clique:
        """The coarsest clique that two of the same columns are sums of; kept, as candidates are asked again and again."""
        known = self._finer.get((one, other))
        if known is None:
            sizes = self._grid.sizes
            known = self._finer[one, other] = tuple(
                a if sizes[a] >= sizes[b] else b for a, b in zip(one, other, strict=True)
            )
        return known

    def coarsened(
        self, asked: Sequence[tuple[NDArray[np.float64], Clique, Clique]]
    ) -> list[NDArray[np.float64]]:
        """Of each (values, source, target), the marginal of `target` from that of `source`, flat both; of all
        alike at once."""
        found = [values for values, _, _ in asked]
        alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for place, (_, source, target) in enumerate(asked):
            if source != target:
                axes = self._axes.get((source, target))
                if axes is None:
                    axes = self._axes[source, target] = self._axes_between(source, target)
                alike.setdefault(axes, []).append(place)
        for axes, places in alike.items():
            together = max(1, MAX_TOGETHER // prod(fine for fine, _ in axes))
            for start in range(0, len(places), together):
                some = places[start : start + together]
                for place, values in zip(some, self._summed(axes, [asked[n] for n in some]), strict=True):
                    found[place] = values
        return found

    def _axes_between(self, source: Clique, target: Clique) -> tuple[tuple[int, int], ...]:
        """Of each axis: values of the source, bins of the target (0: the same)."""
        sizes = self._grid.sizes
        return tuple((sizes[a], sizes[b] if a != b else 0) for a, b in zip(source, target, strict=True))

    def _summed(
        self, axes: Sequence[tuple[int, int]], asked: Sequence[tuple[NDArray[np.float64], Clique, Clique]]
    ) -> NDArray[np.float64]:
        """As `coarsened`, a row each, of cliques of one shape. axes: as `_axes_between`."""
        values, shape = np.concatenate([of for of, _, _ in asked]), [fine for fine, _ in axes]
        for axis, (_, coarse) in enumerate(axes):
            if coarse:
                sums = np.concatenate(
                    [self._matrix(source[axis], target[axis]) for _, source, target in asked]
                )
                rows = values.reshape(len(asked), prod(shape[:axis]), shape[axis], -1)
                values = np.matmul(sums.reshape(len(asked), 1, coarse, shape[axis]), rows)
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
