"""Studies whose owners train a model instead of asking an oracle: who they are, and what a run then does without.

No records are joined, so nothing of an alignment is announced. Standard library only.
"""

from __future__ import annotations

from typing import Any

from runner.study.model import Study
from synth.algorithm import ALGORITHMS, TrainedAlgorithm


def trained(study: Study) -> TrainedAlgorithm[Any, Any] | None:
    """The study's algorithm if its owners train; None if it asks an oracle."""
    algorithm = ALGORITHMS[study.algorithm]
    return algorithm if isinstance(algorithm, TrainedAlgorithm) else None
