"""How far the data have moved from a prior, learned from what a run measures afresh.

Let a marginal of n cells have been measured with noise sigma^2 in each cell, and p be the prior's shares for
it after raking, N the rows. Were nothing changed, Q = ||y - N p||^2 would be about n sigma^2 + N^2 (D + E),
with E the error of what is inherited by its noise, and D that of two draws of rows and of the columns' noise
now. A drift that moves the log odds of each cell by an independent amount of mean square k^2 and leaves the
single columns alone adds about

    k^2 N^2 S,    S = sum over cells of p^2 prod_i (1 - p_i)^2

with p_i the shares of the cell's values in their columns: exact for two binary independent columns, where the
only change that leaves the columns alone is t (+1, -1, -1, +1) with t = k a (1 - a) b (1 - b). So over all
fresh marginals

    y - N p  ~  N(0, s I),    s = sigma^2 + N^2 (D + c E + k^2 S) / n

and c, at most 1, and k^2 are estimated by marginal likelihood (empirical Bayes). c: a model is nearer to the
truth than each measurement that it was fitted to, for it follows all of them. What is measured afresh was
picked where the model, prior included, fits worst, so k is overstated for the rest: the error is on the side
of caution. One marginal may have drifted alone: what shares two columns with it takes the excess of that one,
if it is more (`beside`). Single columns are all measured: each has its own.

The prior is rejected when what was measured afresh speaks for the product of its columns and against the
prior's answers, at odds of `ODDS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 101)])
"""Of k^2."""
ODDS = 100.0
"""By likelihood, at which the data reject a prior."""
SCALES = np.linspace(0.1, 1.0, 10)
"""Of c."""


@dataclass(frozen=True)
class Misfit:
    """A fresh marginal beside the prior. cells, noise: n and sigma^2. squares, independent: Q, and the same
    beside the product of its columns. sampling, error, spread: N^2 times D, E and S."""

    columns: frozenset[str]
    cells: int
    noise: float
    squares: float
    independent: float
    sampling: float
    error: float
    spread: float

    def excess(self, scale: float) -> float:
        """k^2 by this marginal alone, at least 0. scale: c."""
        more = self.squares - self.cells * self.noise - self.sampling - scale * self.error
        return max(0.0, more / self.spread) if self.spread > 0 else 0.0

    @property
    def chi2(self) -> float:
        """Q in variances of a cell without any drift."""
        return self.squares / (self.noise + (self.sampling + self.error) / self.cells)


@dataclass(frozen=True)
class Drift:
    """What the misfits say. k2: k^2 of what none of them touches. scale: c."""

    misfits: tuple[Misfit, ...] = ()
    k2: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, misfits: Sequence[Misfit]) -> Drift:
        """Estimate by marginal likelihood; without misfits there is no drift, and nothing is known to be
        better than stated."""
        if not misfits:
            return cls()
        cells, noise, squares, sampling, error, spread = np.array(
            [(m.cells, m.noise, m.squares, m.sampling, m.error, m.spread) for m in misfits]
        ).T
        inherited = sampling + SCALES[:, None, None] * error + GRID[:, None] * spread
        variance = noise + inherited / cells
        loss = (cells * np.log(variance) + squares / variance).sum(axis=-1)
        scale, k2 = np.unravel_index(int(loss.argmin()), loss.shape)
        return cls(tuple(misfits), float(GRID[k2]), float(SCALES[scale]))

    def beside(self, columns: Sequence[str]) -> float:
        """k^2 of a marginal of these columns. Of a single column what its own counts say: each has been
        measured."""
        if len(columns) == 1:
            own = [m.excess(self.scale) for m in self.misfits if m.columns == set(columns)]
            return max(own, default=0.0)
        near = [m.excess(self.scale) for m in self.misfits if len(m.columns.intersection(columns)) > 1]
        return max([self.k2, *near])

    @property
    def rejects(self) -> bool:
        """Whether the prior is a much worse guess at what was measured than independent columns."""
        return sum((m.squares - m.independent) / (2 * m.noise) for m in self.misfits) > math.log(ODDS)

    @property
    def p_value(self) -> float:
        """Of the misfits together, were nothing changed; 1 of nothing."""
        from scipy.special import chdtrc  # the chi-square law's tail; no run without a prior waits for it

        freedom = sum(m.cells for m in self.misfits)
        return float(chdtrc(freedom, sum(m.chi2 for m in self.misfits))) if freedom else 1.0
