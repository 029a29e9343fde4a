"""The `[mst]` table."""

from __future__ import annotations

from dataclasses import dataclass

from synth.config import ModelConfig


@dataclass(frozen=True)
class MstConfig(ModelConfig):
    """The `[mst]` table of a study."""
