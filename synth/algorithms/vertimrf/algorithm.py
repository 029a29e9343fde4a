"""VertiMRF's descriptor and its `[vertimrf]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.options import option
from synth.algorithm import SOUND, Algorithm, Promise
from synth.algorithms.privmrf.algorithm import PrivMrf, PrivMrfConfig

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.algorithms.vertimrf.plan import VertiMrfPlan
    from synth.domain import Domain
    from synth.run import Synthesis
    from synth.workload import Workload


@dataclass(frozen=True)
class VertiMrfConfig(PrivMrfConfig):
    """The `[vertimrf]` table of a study. encoder: how marginals across owners are counted."""

    encoder: str = option("mpc", "word", "marginals across owners are counted on shares", words=("mpc",))


class VertiMrf(Algorithm["VertiMrfConfig", "VertiMrfPlan"]):
    """VertiMRF with marginals on shares: the structure inside each owner's columns first, then across owners."""

    name = "vertimrf"
    title = "VertiMRF"
    rank = 5
    summary = "VertiMRF is PrivMRF for columns of several owners: what depends inside an owner's columns comes first"
    config = VertiMrfConfig
    left_out = "no graph will join its columns"
    partitions = ("vertical",)

    def claim(self, config: VertiMrfConfig) -> str:
        return SOUND

    def adaptive(self, config: VertiMrfConfig) -> bool:
        return True

    def plan(
        self, domain: Domain, workload: Workload, config: VertiMrfConfig, **promise: Unpack[Promise]
    ) -> VertiMrfPlan:
        from synth.algorithms.vertimrf.plan import plan

        return plan(domain, workload, config, **promise)

    def asks(self, plan: VertiMrfPlan) -> str:
        return PrivMrf().asks(plan)

    def run(self, oracle: MarginalOracle, plan: VertiMrfPlan, observe: Observe) -> Synthesis:
        from synth.algorithms.vertimrf import loop

        return loop.run(oracle, plan, observe)


ALGORITHM = VertiMrf()
