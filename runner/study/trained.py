"""Studies whose owners train a model instead of asking an oracle: who they are, and what a run then does without.

No records are joined, so nothing of an alignment is announced; no step is ever made twice, so a run that was interrupted starts
anew. Standard library only.
"""

from __future__ import annotations

from typing import Any

from runner.study.model import Study
from synth.algorithm import ALGORITHMS, TrainedAlgorithm


def trained(study: Study) -> TrainedAlgorithm[Any, Any] | None:
    """The study's algorithm if its owners train; None if it asks an oracle."""
    algorithm = ALGORITHMS[study.algorithm]
    return algorithm if isinstance(algorithm, TrainedAlgorithm) else None


def resumes(study: Study) -> bool:
    """Whether a run that was interrupted can go on."""
    return study.descriptor.resumes and trained(study) is None
