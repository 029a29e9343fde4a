"""Of all tables with some marginals, the one in which a function of all columns varies most.

Marginals of pairs do not say how three columns go together, and the error of an estimate that reads all three
depends on that: where y spreads only among rows with a != g, and not by a or g alone, coefficients of y ~ a + g
vary three times as much as a model of the pairs has it. The largest variance is a linear program in the cells
x of the table,

    maximise  sum_x p_x f_x^2     over p >= 0 with the known sums,

for the mean of f, a sum of functions of known marginals, is the same in all of these (`docs/design/inference.md`
4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synth.inference.moments import Array

MAX_COUPLED_CELLS = 1 << 13
"""Of the table: with as many the program takes .4 CPU seconds."""


def most_varying(counts: Array, squares: Array, marginals: Sequence[NDArray[np.intp]]) -> Array:
    """counts: a table with these marginals, float64 (cells,). squares: f^2 of each cell. marginals: of each,
    the cell of it that every cell of the table lies in. Returns the table, float64 (cells,); `counts` if the
    program has no answer."""
    from scipy.optimize import linprog  # only who asks waits for it
    from scipy.sparse import csr_matrix, vstack

    cells = np.arange(len(counts))
    sums = [csr_matrix((np.ones(len(cells)), (of, cells))) for of in marginals]
    known = np.concatenate([np.bincount(of, weights=counts) for of in marginals])
    scale = float(squares.max(initial=0.0)) or 1.0
    found = linprog(-squares / scale, A_eq=vstack(sums), b_eq=known, method="highs")
    return np.asarray(found.x, np.float64) if found.status == 0 else counts
