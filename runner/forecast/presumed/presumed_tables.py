"""A presumed table for dry runs: what a run costs depends a little on how uneven and how dependent the
columns are.

Nobody's data: a mixture of a few latent classes, in each of which the columns are independent and uneven
(value of rank r with weight r^-STEEPNESS), and whose order of values is the usual one in most classes.
Marginals are computed from the mixture itself, so that no rows need to be drawn and millions of rows cost
nothing. The constants are fitted to the bytes of runs on real tables (Adult in three codings, BR2000; degree
2 and 3): between 0.88 and 1.17 of what those take; for tables with few codes they do not matter. The random
numbers are seeded: the same table each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique

CLASSES = 6
STEEPNESS = 2.2
USUAL = 0.8
"""The chance that a class has a column's usual order of values."""
SEED = 20_000
MANY_CELLS = 1 << 16
"""Of a marginal whose classes are added by a product of matrices."""


class PresumedTable:
    """Marginals of `rows` invented rows over columns of these sizes."""

    def __init__(self, sizes: Mapping[str, int], rows: int) -> None:
        rng = np.random.default_rng(SEED)
        self._rows = rows
        self._classes = 1.0 / np.arange(1, CLASSES + 1)
        self._classes /= self._classes.sum()
        self._columns = {}
        for name, size in sizes.items():
            weights = np.arange(1, size + 1) ** -STEEPNESS
            usual = rng.permutation(size)
            orders = [usual if rng.random() < USUAL else rng.permutation(size) for _ in range(CLASSES)]
            self._columns[name] = np.stack([weights[order] / weights.sum() for order in orders])

    def counts(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Marginals, int64, cells in row-major order of each clique's columns; each sums to the number of
        rows."""
        return [self._marginal(clique) for clique in cliques]

    def _marginal(self, clique: Clique) -> NDArray[np.int64]:
        total = self._shares(clique)
        np.cumsum(total, out=total)
        total *= self._rows
        bounds = np.rint(total, out=total).astype(np.int64)
        bounds[-1] = self._rows
        return np.diff(bounds, prepend=0)

    def _shares(self, clique: Clique) -> NDArray[np.float64]:
        """Of the cells: what the classes say, together."""
        parts = self._classes[:, None]
        *others, last = clique
        for name in others:
            parts = (parts[:, :, None] * self._columns[name][:, None, :]).reshape(CLASSES, -1)
        if parts.shape[1] * self._columns[last].shape[1] >= MANY_CELLS:
            # A product of matrices adds the classes in one go.
            added: NDArray[np.float64] = parts.T @ self._columns[last]
            return added.reshape(-1)
        total = np.zeros(parts.shape[1] * self._columns[last].shape[1])
        for part, of_last in zip(parts, self._columns[last], strict=True):
            total += np.multiply.outer(part, of_last).reshape(-1)
        return total
