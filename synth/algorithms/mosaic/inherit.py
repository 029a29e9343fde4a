"""A prior in a run of Mosaic: at the resolutions of the run's own bins, as much of it as the model holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synth.mrf import SizeEstimator
from synth.prior import Inheritance
from synth.run import ROUND_ITERATIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique
    from synth.algorithms.mosaic.loop import MosaicRun
    from synth.prior import Prior

MIN_SHARE = 1e-6
"""Of the rows: a value that is rarer in the fitted columns is taken to be so rare."""


def inherit(prior: Prior, run: MosaicRun) -> None:
    """Bring a prior to a run whose columns are measured and fitted and whose candidates are known: its single
    columns first, then, raked to the columns as these are fitted then, as much of the rest as the model
    holds."""
    asked = list(dict.fromkeys(c.columns for c in run.candidates))
    inheritance = run.inheritance = Inheritance(prior, run.total, run.chains, asked)
    columns = _fitted_columns(run, inheritance)
    held: list[Clique] = list(run.plan.reserved.cliques)  # which must have their room

    def fits(clique: Clique) -> bool:
        used = run.chains.used(run.plan.domain.sizes, run.levels, [*held, clique])
        cliques = [*held, clique, *run.plan.domain.impossible]
        if SizeEstimator(used.sizes, cliques, used.coarser).mb > run.plan.config.max_model_mb:
            return False
        held.append(clique)
        return True

    inheritance.join(columns, run.grid.within, fits)
    run.refit(0, ROUND_ITERATIONS)
    run.inherited_mb = min(run.model.size_mb, run.plan.config.max_model_mb)


def rake_again(run: MosaicRun) -> None:
    """Bring what a run has inherited to its columns as these have been measured again. Where noise is large most of the budget is
    spent on that: what was raked to the first counts would hold the model to them."""
    inheritance = run.inheritance
    if inheritance is not None and run.is_inheriting:
        inheritance.loosen()
        columns = _fitted_columns(run, inheritance)
        inheritance.rake(run.total, columns)


def _fitted_columns(run: MosaicRun, inheritance: Inheritance) -> dict[str, tuple[NDArray[np.float64], float]]:
    """Of each column that the prior has, the counts of a model without its dependences, and the variance they are known with."""
    run.refit(run.rounds, ROUND_ITERATIONS)
    precision: dict[str, float] = {}
    for m in run.measurements:
        if len(m.clique) == 1:
            precision[m.clique[0]] = precision.get(m.clique[0], 0.0) + 1 / float(m.sigma2)
    names = [name for name in inheritance.names if name in precision]
    counts = run.model.marginals([(name,) for name in names])
    return {
        name: (
            np.maximum(values, MIN_SHARE * run.total),
            1 / (precision[name] + 1 / inheritance.variance(name)),
        )
        for name, values in zip(names, counts, strict=True)
    }
