"""A model with given one-way marginals that keeps another model's dependences: its projection onto them
("raking").

Of all distributions with the given one-way marginals, the one nearest to the model in relative entropy has
the model's potentials times a factor for each column (I-projection, Csiszar 1975). So the fit to the one-way
marginals alone, begun at the model's potentials, finds it. Public post-processing (`docs/design/flaim.md`
2.4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.mrf.factor import Impossible
from synth.mrf.fit import Measurement, fit
from synth.mrf.model import Model

ITERATIONS = 300
_NO_WEIGHT = 1e30
"""The variance of what is not to be followed: the clique is kept, its counts weigh nothing."""


def rake(model: Model, columns: Sequence[Measurement], impossible: Impossible | None = None) -> Model:
    """The projection of a model onto one-way marginals; its total becomes theirs. impossible: cells that stay
    without mass."""
    kept = [
        Measurement(clique, np.full(model.potentials[clique].shape, 1.0), _NO_WEIGHT)
        for clique in model.cliques
        if len(clique) > 1
    ]
    total = float(np.mean([column.values.sum() for column in columns]))
    return fit(
        model.sizes,
        [*columns, *kept],
        total=max(1.0, total),
        warm_start=model,
        levels=model.used_levels,
        impossible=impossible,
        iterations=ITERATIONS,
    )
