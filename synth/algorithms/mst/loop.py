"""MST's run (`plan` fixes noise and candidates, `synth.run` asks and fits).

    0   measure all one-way marginals (one batch); their sums give the noisy total, the only row count used anywhere; fit
    1   share all candidate pairs, once
    t   candidates: pairs that connect two components and keep the model within max_model_mb; select the one whose marginal
        is farthest from independence (the model stays that of step 0, so that its answers are computed once)
    -   measure the chosen pairs (one batch) with all that is left of rho; fit

Each selection reads the data through the oracle alone, and which pairs are offered follows from those chosen before.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.functionality import Observe, unobserved
from synth.algorithms.mst.plan import Components
from synth.fallback import joining_cells
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, Run, Synthesis

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.algorithms.mst.plan import MstPlan

NOISE_LIMIT = 0.09
"""Of the noise of joining a column to another, as a share of the rows."""


def run(oracle: MarginalOracle, plan: MstPlan, observe: Observe = unobserved) -> Synthesis:
    """Run MST on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is released after that.
    """
    run = Run(oracle, plan, observe)
    run.measure_columns(plan.one_way, plan.sigma2, 0)
    run.refit(0, ROUND_ITERATIONS if plan.candidates else FINAL_ITERATIONS)
    if plan.candidates and run.falls_back(joining_cells(plan.candidates), NOISE_LIMIT):
        run.sharpen()
        return run.synthesis()
    run.share(list(plan.candidates))
    independent = dict(zip(plan.candidates, run.model.marginals(plan.candidates), strict=True))
    components, limit = Components(plan.domain.names), plan.config.max_model_mb
    while pairs := run.fitting(filter(components.apart, plan.candidates), limit, beside=run.selected):
        nothing = [Fraction(0)] * len(pairs)
        chosen = run.select(
            pairs, [independent[pair] for pair in pairs], [Fraction(1)] * len(pairs), nothing, plan.epsilon
        )
        components.join(pairs[chosen])
    if run.selected:
        sigma2 = plan.pair_sigma2(run.left, len(run.selected))
        run.measure_selected(
            run.selected,
            [independent[pair] for pair in run.selected],
            sigma2,
            [plan.noise(pair, sigma2) for pair in run.selected],
        )
        run.refit(len(run.selected), FINAL_ITERATIONS)
    return run.synthesis()
