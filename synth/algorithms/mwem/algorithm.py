"""MWEM+PGM's descriptor and its `[mwem]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synth.algorithm import MarginalAlgorithm
from synth.config import RoundConfig, rounds_option

if TYPE_CHECKING:
    from synth.algorithms.mwem.plan import MwemPlan


@dataclass(frozen=True)
class MwemConfig(RoundConfig):
    """The `[mwem]` table of a study."""

    rounds: int = rounds_option()


class Mwem(MarginalAlgorithm["MwemConfig", "MwemPlan"]):
    """MWEM+PGM: multiplicative weights' rounds on a graphical model."""

    name = "mwem"
    home = "synth.algorithms.mwem"
    title = "MWEM+PGM"
    rank = 1
    summary = "MWEM+PGM picks the workload's cliques that the model gets most wrong"
    config = MwemConfig
    left_out = "it is never measured"

    def asks(self, plan: MwemPlan) -> str:
        return (
            f"the number of rows, then {plan.times('round')}: which of {len(plan.candidates):,} cliques is worst, "
            "and its counts"
        )


ALGORITHM = Mwem()
