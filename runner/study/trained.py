"""Studies whose owners train a model instead of asking an oracle: who they are, and what a run then does
without.

Two kinds: with a server, who makes a table of the model (`trained`); two owners between themselves, who keep
it (`training_of`). Standard library only.
"""

from __future__ import annotations

from typing import Any

from mpc_protocols.errors import StudyInvalid
from runner.study.model import Study, VerticalStudy
from runner.study.owners import Ownership
from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from synth.training import OWNERS, Training


def trained(study: Study) -> TrainedAlgorithm[Any, Any] | None:
    """The study's algorithm if its owners train with a server. Their records are not joined: nothing of it is
    announced."""
    algorithm = ALGORITHMS[study.algorithm]
    return algorithm if isinstance(algorithm, TrainedAlgorithm) else None


def training_of(study: Study) -> Training[Any, Any] | None:
    """The study's algorithm if two owners train a model between themselves."""
    algorithm = ALGORITHMS[study.algorithm]
    return algorithm if isinstance(algorithm, Training) else None


def check_owners(study: VerticalStudy, owned: Ownership) -> None:
    """Raise `StudyInvalid` unless two owners that compute, and so have a link, hold the label and something
    else."""
    if len(owned.owners) != OWNERS:
        raise StudyInvalid(
            f'{study.path}: [study] algorithm = "{study.algorithm}" trains a model of two owners, and '
            f"{len(owned.owners)} parties own columns; give the columns to two of them."
        )
    for name in owned.owners:
        if not study.party(name).compute:
            raise StudyInvalid(
                f'{study.path}: [study] algorithm = "{study.algorithm}" needs both owners to compute, and party '
                f"{name} does not; set compute = true in its [[party]]."
            )


def predicted(study: Study) -> str:
    """The column that the model predicts."""
    training = training_of(study)
    assert training is not None
    return training.predicted(study.config)


def active_owner(study: Study, owned: Ownership) -> str:
    """The owner of the label."""
    return owned.columns[predicted(study)]
