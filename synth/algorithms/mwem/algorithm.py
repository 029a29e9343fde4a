"""MWEM+PGM's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.algorithm import MarginalAlgorithm
from synth.algorithms.mwem.config import MwemConfig

if TYPE_CHECKING:
    from synth.algorithms.mwem.plan import MwemPlan


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
