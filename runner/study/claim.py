"""What a run of a study claims to protect, in one sentence: the descriptors' own claims put together.
Standard library only."""

from __future__ import annotations

from runner.study.model import Study, VerticalStudy
from runner.study.owners import method_of
from runner.study.trained import trained
from synth.algorithm import ALGORITHMS
from synth.training import Training


def claim_of(study: Study) -> str:
    """The claims of algorithm, backend and alignment method, for run.json and `plan`."""
    backend = study.descriptor
    algorithm, trains = ALGORITHMS[study.algorithm], trained(study) is not None
    claims = [algorithm.claim(study.config)]
    if isinstance(algorithm, Training) and isinstance(study, VerticalStudy):
        # the owners of a training learn of each other what no backend and no alignment hides
        claims.append(f"of the alignment alone: {method_of(study).claim}")
    else:
        # reports and trainings with a server rest on no backend
        if backend.ideal or not (trains or algorithm.reporting(study.config)):
            claims.append(backend.claim)
        if isinstance(study, VerticalStudy) and not backend.ideal and not trains:
            claims.append(method_of(study).claim)
    text = "; ".join(claims)
    return f"{text[0].upper()}{text[1:]}."
