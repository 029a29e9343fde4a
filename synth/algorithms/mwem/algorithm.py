"""MWEM+PGM's descriptor and its `[mwem]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.process.later import Later
from synth.algorithm import SOUND, Algorithm, PromiseWithReserved
from synth.algorithms.mwem.plan import plan
from synth.config import RoundConfig, rounds_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.algorithms.mwem import loop
    from synth.algorithms.mwem.plan import MwemPlan
    from synth.domain import Domain
    from synth.run import Measured, Synthesis
    from synth.workload import Workload
else:
    loop = Later("synth.algorithms.mwem.loop")


@dataclass(frozen=True)
class MwemConfig(RoundConfig):
    """The `[mwem]` table of a study."""

    rounds: int = rounds_option()


class Mwem(Algorithm["MwemConfig", "MwemPlan"]):
    """MWEM+PGM: multiplicative weights' rounds on a graphical model."""

    name = "mwem"
    title = "MWEM+PGM"
    rank = 1
    constrained = True
    reserves = True
    summary = "MWEM+PGM picks the workload's cliques that the model gets most wrong"
    config = MwemConfig
    left_out = "it is never measured"

    def claim(self, config: MwemConfig) -> str:
        return SOUND

    def plan(
        self, domain: Domain, workload: Workload, config: MwemConfig, **promise: Unpack[PromiseWithReserved]
    ) -> MwemPlan:
        return plan(domain, workload, config, **promise)

    def small_share(self, plan: MwemPlan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return loop.small_share(plan, noisy_total)

    def asks(self, plan: MwemPlan) -> str:
        return (
            f"the number of rows, then {plan.times('round')}: which of {len(plan.candidates):,} cliques is worst, "
            "and its counts"
        )

    def run(self, oracle: MarginalOracle, plan: MwemPlan, observe: Observe) -> Synthesis:
        return loop.run(oracle, plan, observe)


ALGORITHM = Mwem()
