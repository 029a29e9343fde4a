"""MST's descriptor and its `[mst]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.process.later import Later
from synth.algorithm import SOUND, Algorithm, PromiseWithReserved
from synth.algorithms.mst.plan import plan
from synth.config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.algorithms.mst import loop
    from synth.algorithms.mst.plan import MstPlan
    from synth.domain import Domain
    from synth.run import Measured, Synthesis
    from synth.workload import Workload
else:
    loop = Later("synth.algorithms.mst.loop")


@dataclass(frozen=True)
class MstConfig(ModelConfig):
    """The `[mst]` table of a study."""


class Mst(Algorithm["MstConfig", "MstPlan"]):
    """MST: a maximum spanning tree of two-column marginals."""

    name = "mst"
    title = "MST"
    rank = 2
    constrained = True
    reserves = True
    summary = "MST picks a tree of the pairs of columns that depend most on each other"
    config = MstConfig
    left_out = "no tree will hold this pair"

    def claim(self, config: MstConfig) -> str:
        return SOUND

    def plan(
        self, domain: Domain, workload: Workload, config: MstConfig, **promise: Unpack[PromiseWithReserved]
    ) -> MstPlan:
        return plan(domain, workload, config, **promise)

    def small_share(self, plan: MstPlan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return loop.small_share(plan, noisy_total)

    def asks(self, plan: MstPlan) -> str:
        return (
            f"each column once, then {plan.times('time')} which of {len(plan.candidates):,} pairs is least independent, "
            "at last their counts"
        )

    def run(self, oracle: MarginalOracle, plan: MstPlan, observe: Observe) -> Synthesis:
        return loop.run(oracle, plan, observe)


ALGORITHM = Mst()
