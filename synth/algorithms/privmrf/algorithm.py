"""PrivMRF's descriptor and its `[privmrf]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.options import option
from mpc_protocols.process.later import Later
from synth.algorithm import SOUND, Algorithm, PromiseWithReserved
from synth.algorithms.privmrf.plan import plan
from synth.config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.algorithms.privmrf import loop
    from synth.algorithms.privmrf.plan import PrivMrfPlan
    from synth.domain import Domain
    from synth.run import Measured, Synthesis
    from synth.workload import Workload
else:
    loop = Later("synth.algorithms.privmrf.loop")


@dataclass(frozen=True)
class PrivMrfConfig(ModelConfig):
    """The `[privmrf]` table of a study. max_columns: of a marginal."""

    max_columns: int = option(4, "whole", "columns of a marginal, at most", low=2, high=6)


class PrivMrf(Algorithm["PrivMrfConfig", "PrivMrfPlan"]):
    """PrivMRF: one noisy look at how much every pair of columns depends, then marginals inside the tree that
    this gives."""

    name = "privmrf"
    title = "PrivMRF"
    rank = 4
    constrained = True
    reserves = True
    summary = "PrivMRF measures how much all pairs of columns depend, and then marginals inside the graph of those that do"
    config = PrivMrfConfig
    left_out = "no graph will join its columns"

    def claim(self, config: PrivMrfConfig) -> str:
        return SOUND

    def adaptive(self, config: PrivMrfConfig) -> bool:
        return True

    def plan(
        self,
        domain: Domain,
        workload: Workload,
        config: PrivMrfConfig,
        **promise: Unpack[PromiseWithReserved],
    ) -> PrivMrfPlan:
        return plan(domain, workload, config, **promise)

    def small_share(self, plan: PrivMrfPlan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return loop.small_share(plan, noisy_total)

    def asks(self, plan: PrivMrfPlan) -> str:
        return (
            f"each column once, how far {len(plan.pairs):,} pairs are from independence, a marginal for each column, then "
            f"{plan.times('time')}, several at a time, which marginal of the graph is worst, and its counts"
        )

    def run(self, oracle: MarginalOracle, plan: PrivMrfPlan, observe: Observe) -> Synthesis:
        return loop.run(oracle, plan, observe)


ALGORITHM = PrivMrf()
