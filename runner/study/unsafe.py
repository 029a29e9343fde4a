"""What is to be said of a study's epsilon and delta before anything runs (`synth.judgement.parameters`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.study.read import DEFAULT_MAX_ROWS
from synth.judgement.parameters import unsafe

if TYPE_CHECKING:
    from runner.study.model import Study
    from synth.judgement.warned import Warned


def unsafe_of(study: Study) -> tuple[Warned, ...]:
    """The warnings; of delta only where the study bounds its rows itself."""
    privacy = study.privacy
    rows = None if privacy.max_rows == DEFAULT_MAX_ROWS else privacy.max_rows
    return unsafe(float(privacy.epsilon), float(privacy.delta), rows)
