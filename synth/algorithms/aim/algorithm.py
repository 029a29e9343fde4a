"""AIM's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.later import Later
from synth.algorithm import MarginalAlgorithm, WhileArriving
from synth.algorithms.aim.config import AimConfig

if TYPE_CHECKING:
    from synth.algorithms.aim import arriving
    from synth.algorithms.aim.arriving import ArrivingPlan
    from synth.algorithms.aim.plan import AimPlan
else:
    arriving = Later("synth.algorithms.aim.arriving")


class Aim(MarginalAlgorithm["AimConfig", "AimPlan"]):
    """AIM: an adaptive, iterative mechanism for synthetic data."""

    name = "aim"
    home = "synth.algorithms.aim"
    title = "AIM"
    rank = 0
    arrives = True
    summary = "AIM picks the marginals that the model gets most wrong"
    config = AimConfig
    left_out = "it is never measured itself, only its subsets are"

    def adaptive(self, config: AimConfig) -> bool:
        return config.fixed_rounds is None

    def while_arriving(
        self, config: AimConfig, rounds: int, again: bool
    ) -> WhileArriving[AimConfig, ArrivingPlan]:
        if config.fixed_rounds != rounds:
            raise StudyInvalid(
                f"There is a selection for each of {rounds} closes: set [aim] rounds = {rounds}."
            )
        return arriving.AimWhileArriving(rounds, again)

    def asks(self, plan: AimPlan) -> str:
        return (
            f"each column once, then {plan.times('round')}: which of {len(plan.candidates):,} marginals is worst, "
            "and its counts"
        )


ALGORITHM = Aim()
