"""One shot: all single columns and pairs of the workload's closure are measured once; no selection
(`docs/design/flaim.md` 5).

The noise of a marginal of n cells and weight w has sigma proportional to (w n)^(-1/3): the least weighted
noise that the budget buys. Which pairs the model holds is decided afterwards from what was opened: the one
that the model gets most wrong, for as long as one is wrong by more than its noise and the model has room.
That is public post-processing. It asks a marginal oracle, once, so it also runs on bundles that contributors
have left; nobody needs to stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from synth.budget.charges import mean_noise
from synth.mrf import Measurement, Model, SizeEstimator, fit
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS
from synth.synthesis import Measured, Synthesis

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.algorithms.flaim.plan import FlaimPlan

WORTH_ITERATIONS = ROUND_ITERATIONS // 4
"""After each pair that the model takes up."""


def run(oracle: MarginalOracle, plan: FlaimPlan, observe: Observe) -> Synthesis:
    """Measure, then decide. Raises what the oracle raises."""
    noises = plan.noises
    cliques = list(noises)
    values = oracle.measure(oracle.prepare(cliques), list(noises.values()))
    total = oracle.noisy_total
    assert total is not None  # it has measured
    measured = {
        clique: Measured(clique, noises[clique], 0, noisy)
        for clique, noisy in zip(cliques, values, strict=True)
    }
    observe(
        "measure",
        "measured",
        round=0,
        cliques=[list(clique) for clique in cliques],
        sigma=float(max(noises.values())) ** 0.5,
        noisy_total=total,
        rho_spent=float(sum(map(plan.charges.measuring, noises.values()))),
        rho=float(plan.budget.rho_cap),
    )
    model = structured(plan, measured, total)
    observe(
        "fit", "structured", pairs=sum(len(clique) > 1 for clique in model.cliques), model_mb=model.size_mb
    )
    rows = plan.config.synthetic_rows or min(max(0, round(total)), oracle.row_bound)
    return Synthesis(model, tuple(measured.values()), (), total, rows)


def structured(plan: FlaimPlan, measured: Mapping[Clique, Measured], total: float) -> Model:
    """The model of all columns and of the pairs that are worth it."""
    weights, limit = plan.workload.weights, plan.config.max_model_mb
    held: list[Clique] = [clique for clique in measured if len(clique) == 1]
    pairs: list[Clique] = [clique for clique in measured if len(clique) > 1]

    def fitted(model: Model | None, iterations: int) -> Model:
        given = [
            Measurement(q, measured[q].values.astype(np.float64), float(measured[q].sigma2)) for q in held
        ]
        return fit(plan.domain.sizes, given, total=max(1.0, total), warm_start=model, iterations=iterations)

    model = fitted(None, ROUND_ITERATIONS)
    while True:
        size = SizeEstimator(plan.domain.sizes, held)
        fits = [q for q in pairs if q not in held and ((mb := size.with_clique(q)) <= limit or mb == size.mb)]
        gains = {
            q: weights.get(q, 1)
            * (
                float(np.abs(measured[q].values - answer).sum())
                - float(mean_noise(measured[q].sigma2)) * len(answer)
            )
            for q, answer in zip(fits, model.marginals(fits), strict=True)
        }
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] <= 0:
            return fitted(model, FINAL_ITERATIONS)
        held.append(best)
        model = fitted(model, WORTH_ITERATIONS)
