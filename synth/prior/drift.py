"""How far the data have moved from a prior, learned from what a run measures afresh.

Let a marginal of n cells have been measured with noise sigma^2 in each cell, and p be the prior's shares for it after raking, N
the rows. Were nothing changed, Q = ||y - N p||^2 would be about n sigma^2 + N^2 E, with E the error of what is inherited (noise
then, noise of the columns now, two draws of rows). A drift that moves the log odds of each cell by an independent amount of mean
square k^2 and leaves the single columns alone adds about

    k^2 N^2 S,    S = sum over cells of p^2 prod_i (1 - p_i)^2

with p_i the shares of the cell's values in their columns: exact for two binary independent columns, where the only change that
leaves the columns alone is t (+1, -1, -1, +1) with t = k a (1 - a) b (1 - b). So over all fresh marginals

    y - N p  ~  N(0, s I),    s = sigma^2 + N^2 (E + k^2 S) / n

and k^2 is estimated by marginal likelihood (empirical Bayes). What is measured afresh was picked where the model, prior included,
fits worst, so k is overstated for the rest: the error is on the side of caution. One marginal may have drifted alone: what shares
two columns with it takes the excess of that one, if it is more (`of`).

The prior is rejected when what was measured afresh lies nearer to the product of its columns than to the prior's answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 201)])
"""Of k^2."""


@dataclass(frozen=True)
class Misfit:
    """A fresh marginal beside the prior. cells, noise: n and sigma^2. squares, independent: Q, and the same beside the product of
    its columns. error, spread: N^2 E and N^2 S."""

    columns: frozenset[str]
    cells: int
    noise: float
    squares: float
    independent: float
    error: float
    spread: float

    @property
    def excess(self) -> float:
        """k^2 by this marginal alone, at least 0."""
        more = self.squares - self.cells * self.noise - self.error
        return max(0.0, more / self.spread) if self.spread > 0 else 0.0

    @property
    def chi2(self) -> float:
        """Q in variances of a cell without any drift."""
        return self.squares / (self.noise + self.error / self.cells)


@dataclass(frozen=True)
class Drift:
    """What the misfits say. k2: k^2 of what none of them touches."""

    misfits: tuple[Misfit, ...]
    k2: float

    @classmethod
    def of(cls, misfits: Sequence[Misfit]) -> Drift:
        """Estimate k^2 by marginal likelihood; 0 of nothing."""
        if not misfits:
            return cls((), 0.0)
        cells, noise, squares, error, spread = np.array(
            [(m.cells, m.noise, m.squares, m.error, m.spread) for m in misfits]
        ).T
        variance = noise + (error + GRID[:, None] * spread) / cells
        loss = (cells * np.log(variance) + squares / variance).sum(axis=1)
        return cls(tuple(misfits), float(GRID[int(loss.argmin())]))

    def beside(self, columns: Sequence[str]) -> float:
        """k^2 of a marginal of these columns."""
        near = [m.excess for m in self.misfits if len(m.columns.intersection(columns)) > 1]
        return max([self.k2, *near])

    @property
    def rejects(self) -> bool:
        """Whether the prior is no better a guess at what was measured than independent columns."""
        return sum((m.squares - m.independent) / m.noise for m in self.misfits) > 0

    @property
    def p_value(self) -> float:
        """Of the misfits together, were nothing changed; 1 of nothing."""
        freedom = sum(m.cells for m in self.misfits)
        return float(stats.chi2.sf(sum(m.chi2 for m in self.misfits), freedom)) if freedom else 1.0
