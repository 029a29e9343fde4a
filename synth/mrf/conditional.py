"""A model given what some columns hold: for rows of a kind, such as people over 65.

Problem: a Markov random field restricted to some values of some columns is one again, with the same graph:
the values that are not allowed become structural zeros of their columns (`factor.zero_factors`), beside those
that the model has.

No further budget: the result is a function of the model, which is released.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from synth.mrf.model import Model


def given(model: Model, allowed: Mapping[str, NDArray[np.bool_]]) -> Model:
    """The model of the rows whose columns have allowed values; `total` is how many the model expects, at
    least 1.

    allowed: of each column named, which of its codes may be. ValueError: an unknown column, another number of
    codes, or values that no row has in the model (less than a double can tell).
    """
    share = 1.0
    found = model
    for name, codes in allowed.items():
        if name not in model.sizes or codes.shape != (model.sizes[name],):
            raise ValueError(f"The model has no column {name!r} of {codes.size} values.")
        counts = found.marginal((name,))
        share *= float(counts[codes].sum() / counts.sum())
        if not share > 0:
            raise ValueError(
                f"No row of the model has these values of {name!r} and of the columns before it."
            )
        if model.sizes[name] > 1:
            zeros = dict(found.impossible)
            zeros[name,] = zeros[name,] | ~codes if (name,) in zeros else ~codes
            found = Model(model.sizes, model.total, model.potentials, model.used_levels, zeros)
    return Model(
        model.sizes,
        max(1.0, model.total * share),
        model.potentials,
        model.used_levels,
        found.impossible,
        found.tree,
    )
