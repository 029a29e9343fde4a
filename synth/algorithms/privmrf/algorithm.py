"""PrivMRF's descriptor and its `[privmrf]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpc_protocols.options import option
from synth.algorithm import MarginalAlgorithm
from synth.config import ModelConfig

if TYPE_CHECKING:
    from synth.algorithms.privmrf.plan import PrivMrfPlan


@dataclass(frozen=True)
class PrivMrfConfig(ModelConfig):
    """The `[privmrf]` table of a study. max_columns: of a marginal."""

    max_columns: int = option(4, "whole", "columns of a marginal, at most", low=2, high=6)


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
