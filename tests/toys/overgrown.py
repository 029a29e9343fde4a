"""Toy algorithms whose model outgrows max_model_mb: what the conformance suite must find."""

from __future__ import annotations

from mpc_protocols.functionality import MarginalOracle, Observe
from synth.algorithms.mst.algorithm import Mst
from synth.algorithms.mst.plan import MstPlan
from synth.mrf import Measurement, fit
from synth.run import Run
from synth.synthesis import Synthesis


class Overgrown(Mst):
    """It measures all pairs, and fits whatever they come to. lets_go: the model, for one of single columns."""

    lets_go = False

    def run(self, oracle: MarginalOracle, plan: MstPlan, observe: Observe) -> Synthesis:
        run = Run(oracle, plan, observe)
        run.measure_columns(plan.one_way, plan.sigma2, 0)
        pairs = list(plan.candidates)
        values = oracle.measure(oracle.prepare(pairs), plan.sigma2 * 100)
        run.refit(0, 1)
        given = [
            Measurement(pair, counts.astype(float), 1.0) for pair, counts in zip(pairs, values, strict=True)
        ]
        grown = fit(plan.domain.sizes, given, total=run.noisy_total, iterations=0)
        if not self.lets_go:
            run._model = grown
        return run.synthesis()


class LetsGo(Overgrown):
    """It hands back a small model."""

    lets_go = True
