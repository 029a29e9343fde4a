"""MST's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.algorithm import MarginalAlgorithm
from synth.algorithms.mst.config import MstConfig

if TYPE_CHECKING:
    from synth.algorithms.mst.plan import MstPlan


class Mst(MarginalAlgorithm["MstConfig", "MstPlan"]):
    """MST: a maximum spanning tree of two-column marginals."""

    name = "mst"
    home = "synth.algorithms.mst"
    title = "MST"
    rank = 2
    summary = "MST picks a tree of the pairs of columns that depend most on each other"
    config = MstConfig
    left_out = "no tree will hold this pair"

    def asks(self, plan: MstPlan) -> str:
        return (
            f"each column once, then {plan.times('time')} which of {len(plan.candidates):,} pairs is least independent, "
            "at last their counts"
        )


ALGORITHM = Mst()
