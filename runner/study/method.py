"""What a study's run does: its algorithm, or what takes its place where contributors come at different times.

Standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.study.waves import together
from synth.algorithm import ALGORITHMS, Algorithm

if TYPE_CHECKING:
    from runner.study.model import Study


def algorithm_of(study: Study) -> Algorithm[Any, Any]:
    """The study's algorithm; after earlier waves, one that measures again what these have measured."""
    algorithm: Algorithm[Any, Any] = ALGORITHMS[study.algorithm]
    if study.contributors is not None and study.contributors.after:
        from synth.arrivals.later_wave import LaterWave

        return LaterWave(algorithm, together(study.contributors.after))
    return algorithm
