"""A model given what some columns hold: for rows of a kind, such as people over 65.

Problem: a Markov random field restricted to some values of some columns is one again, with the same graph: each restricted column
gets one more potential, 0 on the allowed values and a penalty on the others. Log weights stay finite, as the tree needs them, and
the penalty exceeds what all other potentials together can make up for by `MARGIN`: an excluded row weighs less than exp(-MARGIN)
of an allowed one, which is nothing in a double.

No further budget: the result is a function of the model, which is released.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from synth.mrf.model import Model

MARGIN = 1000.0
"""Doubles end at exp(-745)."""


def given(model: Model, allowed: Mapping[str, NDArray[np.bool_]]) -> Model:
    """The model of the rows whose columns have allowed values; `total` is how many the model expects, at least 1.

    allowed: of each column named, which of its codes may be. ValueError: an unknown column, another number of codes, or
    values that no row has in the model (less than a double can tell).
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
            found = _restricted(found, name, codes)
    return Model(model.sizes, max(1.0, model.total * share), found.potentials, model.used_levels, found.tree)


def _restricted(model: Model, name: str, codes: NDArray[np.bool_]) -> Model:
    """With one more potential, of this column."""
    ranges = (float(np.ptp(potential)) for potential in model.potentials.values())
    penalty = np.where(codes, 0.0, -(MARGIN + sum(ranges)))
    potentials = dict(model.potentials)
    potentials[name,] = potentials.get((name,), 0.0) + penalty
    return Model(model.sizes, model.total, potentials, model.used_levels)
