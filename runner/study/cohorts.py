"""Studies whose custodians choose by themselves what they answer (`synth.algorithm.CohortRounds`). Standard
library only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synth.algorithm import ALGORITHMS

if TYPE_CHECKING:
    from runner.study.model import Study
    from synth.algorithm import CohortRounds


def cohorts_of(study: Study) -> CohortRounds[Any] | None:
    """How the study's cohorts are asked; None where an oracle answers."""
    return ALGORITHMS[study.algorithm].cohorts(study.config)
