"""A prior in a run of Mosaic: at the resolutions of the run's own bins, as much of it as the model holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synth.mrf import SizeEstimator
from synth.prior import Inheritance

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.algorithms.mosaic.loop import MosaicRun
    from synth.prior import Prior

SHARE = 0.7
"""Of the model, for what is inherited at most: the rest is for what has not been asked yet."""


def inheritance_of(prior: Prior, run: MosaicRun) -> Inheritance:
    """What the run inherits, once its columns are measured and fitted, and its candidates known."""
    noise = {m.clique[0]: float(m.sigma2) for m in run.measurements if len(m.clique) == 1}
    names = [name for name in prior.names if name in noise]
    counts = run.model.marginals([(name,) for name in names])
    columns = {
        name: (np.maximum(values, 1e-6), noise[name]) for name, values in zip(names, counts, strict=True)
    }
    asked = list(dict.fromkeys(c.columns for c in run.candidates))
    found = Inheritance(prior, columns, run.total, run.chains, run.grid.within, asked)
    held: list[Clique] = []
    limit = SHARE * run.plan.config.max_model_mb

    def fits(clique: Clique) -> bool:
        used = run.chains.used(run.plan.domain.sizes, run.levels, [*held, clique])
        size = SizeEstimator(used.sizes, [*held, clique, *run.plan.domain.impossible], used.coarser).mb
        if size <= limit:
            held.append(clique)
        return size <= limit

    found.hold(fits)
    return found
