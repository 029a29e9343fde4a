"""The `[mwem]` table."""

from __future__ import annotations

from dataclasses import dataclass

from synth.config import RoundConfig, rounds_option


@dataclass(frozen=True)
class MwemConfig(RoundConfig):
    """The `[mwem]` table of a study."""

    rounds: int = rounds_option()
