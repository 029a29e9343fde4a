"""What a run of a study claims to protect, in one sentence: the descriptors' own claims put together. Standard library only."""

from __future__ import annotations

from runner.study.model import Study, VerticalStudy
from runner.study.owners import method_of
from runner.study.trained import trained
from synth.algorithm import ALGORITHMS


def claim_of(study: Study) -> str:
    """The claims of algorithm, backend and alignment method, for run.json and `plan`."""
    backend = study.descriptor
    claims = [ALGORITHMS[study.algorithm].claim(study.config)]
    if trained(study) is None or backend.ideal:
        claims.append(backend.claim)
    if isinstance(study, VerticalStudy) and not backend.ideal and trained(study) is None:
        claims.append(method_of(study).claim)
    text = "; ".join(claims)
    return f"{text[0].upper()}{text[1:]}."
