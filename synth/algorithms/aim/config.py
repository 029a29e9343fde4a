"""The `[aim]` table."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.options import option
from synth.config import ADAPTIVE, RoundConfig, rounds_option


@dataclass(frozen=True)
class AimConfig(RoundConfig):
    """The `[aim]` table of a study. rounds: a number, or "adaptive". select_share: of rho, for selecting."""

    rounds: int | str = rounds_option(ADAPTIVE)
    select_share: float = option(0.1, "number", "share of the budget that selecting takes", below=1.0)

    @property
    def fixed_rounds(self) -> int | None:
        """The number of rounds; None if it is adaptive."""
        return self.rounds if isinstance(self.rounds, int) else None
