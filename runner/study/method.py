"""What a study's run does: its algorithm, or what takes its place where contributors come at different times.

Standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.study.sections.waves import together
from synth.algorithm import ALGORITHMS, Algorithm
from synth.prior.later_wave import LaterWave

if TYPE_CHECKING:
    from runner.study.model import Study


def algorithm_of(study: Study) -> Algorithm[Any, Any]:
    """The study's algorithm; while contributors arrive what it is then; after earlier waves, what measures
    what these have."""
    algorithm: Algorithm[Any, Any] = ALGORITHMS[study.algorithm]
    own = study.contributors
    if own is not None and own.arriving:
        return algorithm.while_arriving(study.config, len(own.closes), own.again)
    if own is not None and own.after:
        return LaterWave(algorithm, together(own.after))
    return algorithm
