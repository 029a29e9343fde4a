"""The model of all columns: the owners' own noisy marginals, and what their encodings say across owners.

A pair across owners is estimated with a noise that is often wider than the table. It joins the graph if it is
told more from independence than its noise would be, the most dependent pairs first, as long as the junction
tree stays within max_model_mb; it counts in the fit by its inverse variance, which is all that is needed to
make it agree with the owners' own, far more exact marginals. Bins are levels of their columns in the model:
inside a bin the owners' marginals decide. All of it is post-processing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Level, Observe
from synth.mrf import Chains, Measurement, SizeEstimator, fit
from synth.mrf.fit import TOLERANCE, estimate_total
from synth.research.vertimrf.plan import EncodedPlan
from synth.run import FINAL_ITERATIONS
from synth.synthesis import Measured, Synthesis

LATE_TOLERANCE = 1e-4
"""Of a fit with pairs across owners: one counts a hundredth or less of an owner's marginal, and is followed
long after those. Without any, the usual tolerance keeps noise out."""


@dataclass(frozen=True)
class Estimate:
    """The counts of two columns of different owners, told by bins: float64 (k_a, k_b), each cell with about
    this variance."""

    columns: tuple[str, str]
    counts: NDArray[np.float64]
    variance: float

    @property
    def noise(self) -> float:
        """The mean L1 norm of its noise."""
        return math.sqrt(2 / math.pi * self.variance) * self.counts.size

    @property
    def dependence(self) -> float:
        """Its L1 distance from the product of its own margins."""
        rows = self.counts.sum()
        if rows <= 0:
            return 0.0
        product = np.outer(self.counts.sum(axis=1), self.counts.sum(axis=0)) / rows
        return float(np.abs(self.counts - product).sum())


def joint_model(
    plan: EncodedPlan,
    levels: dict[str, Level],
    own: Sequence[Measured],
    across: Sequence[Estimate],
    observe: Observe,
) -> Synthesis:
    """Fit the model. levels: the bins of each column that is encoded by bins.

    The number of rows is taken from the owners' noisy marginals: recipients are not told the exact one.
    """
    began = time.perf_counter()
    marginals = [Measurement(m.clique, m.values.astype(np.float64), float(m.sigma2)) for m in own]
    rows = estimate_total(marginals)
    named = {level.name: level for level in levels.values()}
    sizes = plan.domain.sizes
    chains = Chains(sizes, named)
    accepted: list[Clique] = [m.clique for m in own]
    size = SizeEstimator(chains.sizes, accepted, chains.coarser)
    joined: list[Measurement] = []
    for estimate in sorted(across, key=lambda each: -each.dependence):
        if estimate.dependence <= estimate.noise or estimate.noise > rows:
            continue
        clique = tuple(levels[name].name if name in levels else name for name in estimate.columns)
        if size.with_clique(clique) <= plan.config.max_model_mb:
            accepted.append(clique)
            size = SizeEstimator(chains.sizes, accepted, chains.coarser)
            joined.append(Measurement(clique, estimate.counts.reshape(-1), estimate.variance))
    observe(
        "measure",
        "estimates",
        pairs=len(across),
        joined=[list(m.clique) for m in joined],
        sd=math.sqrt(max((e.variance for e in across), default=0.0)),
    )
    model = fit(
        sizes,
        [*marginals, *joined],
        total=rows,
        levels=named,
        iterations=FINAL_ITERATIONS,
        tolerance=LATE_TOLERANCE if joined else TOLERANCE,
    )
    observe(
        "fit",
        "fitted",
        round=0,
        iterations=FINAL_ITERATIONS,
        model_mb=model.size_mb,
        seconds=time.perf_counter() - began,
    )
    return Synthesis(model, tuple(own), (), rows, plan.config.synthetic_rows or round(rows))
