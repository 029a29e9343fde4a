"""Mosaic's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from synth.algorithm import MarginalAlgorithm
from synth.algorithms.mosaic.config import MosaicConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synth.algorithms.mosaic import loop, small
    from synth.algorithms.mosaic.plan import MosaicPlan
    from synth.synthesis import Measured
else:
    loop = Later("synth.algorithms.mosaic.loop")
    small = Later("synth.algorithms.mosaic.small")


class Mosaic(MarginalAlgorithm["MosaicConfig", "MosaicPlan"]):
    """AIM with resolutions: a marginal may be asked over bins of its columns."""

    name = "mosaic"
    home = "synth.algorithms.mosaic"
    title = "Mosaic"
    rank = 3
    inherits = True
    summary = "Mosaic asks marginals at the resolution that the data can pay for"
    proposed = True
    chooses_bins = True
    config = MosaicConfig
    left_out = "no bins are coarse enough for it"

    def adaptive(self, config: MosaicConfig) -> bool:
        return config.fixed_rounds is None

    def small_share(self, plan: MosaicPlan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return small.small_share(plan, measurements, noisy_total, loop.NOISE_LIMIT)

    def asks(self, plan: MosaicPlan) -> str:
        return (
            f"each column once, then {plan.times('pick')}, several at a time: which of {len(plan.candidates):,} sets of "
            "columns is worst at which resolution, and its counts over bins"
        )


ALGORITHM = Mosaic()
