"""The `[privmrf]` table."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.options import option
from synth.config import ModelConfig


@dataclass(frozen=True)
class PrivMrfConfig(ModelConfig):
    """The `[privmrf]` table of a study. max_columns: of a marginal."""

    max_columns: int = option(4, "whole", "columns of a marginal, at most", low=2, high=6)
