"""The `[mosaic]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mpc_protocols.options import option
from synth.config import ADAPTIVE, MAX_ROUNDS, ModelConfig

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
