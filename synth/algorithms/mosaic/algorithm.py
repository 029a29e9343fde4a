"""Mosaic's descriptor and its `[mosaic]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mpc_protocols.options import option
from mpc_protocols.process.later import Later
from synth.algorithm import MarginalAlgorithm
from synth.config import ADAPTIVE, MAX_ROUNDS, ModelConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synth.algorithms.mosaic import loop, small
    from synth.algorithms.mosaic.plan import MosaicPlan
    from synth.synthesis import Measured
else:
    loop = Later("synth.algorithms.mosaic.loop")
    small = Later("synth.algorithms.mosaic.small")


USUAL: Final = "usual"
MAX_BATCH: Final = 16
"""Picks of a selection: of more, most are made by what the model knew before the first."""


@dataclass(frozen=True)
class MosaicConfig(ModelConfig):
    """The `[mosaic]` table of a study. rounds: a number of picks, or "adaptive". batch: picks of a selection, or "usual".
    select_share: of rho, for selecting."""

    rounds: int | str = option(
        ADAPTIVE,
        "whole",
        "picks",
        low=1,
        high=MAX_ROUNDS,
        words=(ADAPTIVE,),
    )
    batch: int | str = option(
        USUAL,
        "whole",
        "picks at a time, at most; usual: 4, or 6 where adaptive (under 12 columns a third of them). With more, parties that "
        "are far apart wait less, and the table is a little worse",
        low=1,
        high=MAX_BATCH,
        words=(USUAL,),
    )
    select_share: float = option(0.1, "number", "share of the budget that selecting takes", below=1.0)

    @property
    def fixed_rounds(self) -> int | None:
        """The number of picks; None if it is adaptive."""
        return self.rounds if isinstance(self.rounds, int) else None

    @property
    def own_batch(self) -> int | None:
        """The number of picks at a time that the study asks for; None if it leaves it."""
        return self.batch if isinstance(self.batch, int) else None


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
