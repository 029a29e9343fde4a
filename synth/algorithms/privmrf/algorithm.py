"""PrivMRF's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.algorithm import MarginalAlgorithm
from synth.algorithms.privmrf.config import PrivMrfConfig

if TYPE_CHECKING:
    from synth.algorithms.privmrf.plan import PrivMrfPlan


class PrivMrf(MarginalAlgorithm["PrivMrfConfig", "PrivMrfPlan"]):
    """PrivMRF: one noisy look at how much every pair of columns depends, then marginals inside the tree that
    this gives."""

    name = "privmrf"
    home = "synth.algorithms.privmrf"
    title = "PrivMRF"
    rank = 4
    summary = "PrivMRF measures how much all pairs of columns depend, and then marginals inside the graph of those that do"
    config = PrivMrfConfig
    left_out = "no graph will join its columns"

    def adaptive(self, config: PrivMrfConfig) -> bool:
        return True

    def asks(self, plan: PrivMrfPlan) -> str:
        return (
            f"each column once, how far {len(plan.pairs):,} pairs are from independence, a marginal for each column, then "
            f"{plan.times('time')}, several at a time, which marginal of the graph is worst, and its counts"
        )


ALGORITHM = PrivMrf()
