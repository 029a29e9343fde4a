"""AIM's descriptor and its `[aim]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import option
from mpc_protocols.process.later import Later
from synth.algorithm import MarginalAlgorithm, WhileArriving
from synth.config import ADAPTIVE, RoundConfig, rounds_option

if TYPE_CHECKING:
    from synth.algorithms.aim import arriving
    from synth.algorithms.aim.arriving import ArrivingPlan
    from synth.algorithms.aim.plan import AimPlan
else:
    arriving = Later("synth.algorithms.aim.arriving")


@dataclass(frozen=True)
class AimConfig(RoundConfig):
    """The `[aim]` table of a study. rounds: a number, or "adaptive". select_share: of rho, for selecting."""

    rounds: int | str = rounds_option(ADAPTIVE)
    select_share: float = option(0.1, "number", "share of the budget that selecting takes", below=1.0)

    @property
    def fixed_rounds(self) -> int | None:
        """The number of rounds; None if it is adaptive."""
        return self.rounds if isinstance(self.rounds, int) else None


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
