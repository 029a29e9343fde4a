"""A toy algorithm that looks at noise alone: MST, but whose columns are independent wherever a question is
noisy. What the conformance suite must find."""

from __future__ import annotations

from mpc_protocols.functionality import MarginalOracle, Observe
from synth.algorithms.mst.algorithm import Mst
from synth.algorithms.mst.plan import MstPlan
from synth.budget.small.fallback import joining_cells, noise_share
from synth.run import Run
from synth.synthesis import Synthesis

LIMIT = 0.09


class GivesUp(Mst):
    """It never looks at what depends on what."""

    def run(self, oracle: MarginalOracle, plan: MstPlan, observe: Observe) -> Synthesis:
        run = Run(oracle, plan, observe)
        run.measure_columns(plan.one_way, plan.sigma2, 0)
        joining = joining_cells(plan.candidates)
        if noise_share(plan, joining, run.noisy_total) > LIMIT:
            run.fall_back(joining, LIMIT)
        run.sharpen()
        return run.synthesis()
