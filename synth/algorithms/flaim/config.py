"""The `[flaim]` table."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.options import option
from synth.algorithms.flaim.variants import VARIANTS
from synth.config import ModelConfig, rounds_option

EVERY_ROUND = "all"


@dataclass(frozen=True)
class FlaimConfig(ModelConfig):
    """The `[flaim]` table of a study. participations: of one client. group: no sum of fewer clients is
    opened."""

    variant: str = option(
        "private",
        "word",
        "which member of the family",
        words=tuple(VARIANTS),
        meaning='which member of the family ([FLAIM](../design/flaim.md)). For research `"oracle"`, which opens true '
        "marginals and needs `research = true`",
    )
    rounds: int = rounds_option(
        meaning="cohorts at most; fewer where there would be fewer than `group` clients in one"
    )
    participations: int | str = option(
        1,
        "whole",
        "how often a client takes part at most",
        low=1,
        words=(EVERY_ROUND,),
        meaning='how often a client takes part at most; or `"all"`: in every round. light and bayes: once',
    )
    group: int = option(
        3,
        "whole",
        "no sum of fewer clients is opened",
        low=1,
        meaning="no sum of fewer clients is opened; the study needs as many (10)",
    )
    select_share: float = option(0.1, "number", "share of the budget that choosing takes", below=1.0)
