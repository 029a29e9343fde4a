"""What a run that trained a model leaves: run.json and a report, alike at all parties; at each owner its
half, for itself alone.

run.json, report.html        of public facts and released figures; "rows" is 0, for there is no table
florist-passive.npz, ...     0600, in the directory of the owner that made it (`synth.training.Half`)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.party.record.events import OF_JOINED
from runner.party.record.run_json import describe
from runner.report import render
from runner.results import outdir
from runner.results.release import Release
from runner.study.trained import active_owner, training_of

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from runner.study import VerticalStudy
    from runner.study.owners import Ownership
    from synth.plan import Plan


def describe_training(
    study: VerticalStudy,
    plan: Plan,
    events: Sequence[Event],
    figures: Mapping[str, float],
    shared: Mapping[str, Any],
    session: bytes,
    study_digest: bytes,
    deployment: str,
    owned: Ownership,
) -> dict[str, Any]:
    """run.json: as of any run, of no rows, with the model's shape and the evaluation. Raises
    `ProtocolAborted`."""
    training = training_of(study)
    assert training is not None
    nothing = Release(np.zeros((0, len(study.domain)), np.uint8), b"", (), (), 0.0, 0, tuple(events))
    run = describe(study, plan, nothing, shared, session, study_digest, deployment, owned)
    del run["privacy"]["noisy_total"]
    active = active_owner(study, owned)
    passive = next(name for name in owned.owners if name != active)
    for phase in run["phases"]:
        if phase["name"] in OF_JOINED:  # a function of the size of the common table
            phase["withheld"] = True
    roles = {"active": active, "passive": passive}
    run["model"] = {**training.described(study.config, study.domain, owned.of(passive)), "owners": roles}
    asked = training.evaluation(plan)
    run["evaluation"] = (
        {"people": "own", "note": "exact figures stay with the owner of the label"}
        if asked is None
        else {**figures, "people": "intersection", "rho": float(plan.charges.measuring(asked.sigma2))}
    )
    run["exposes"] = [list(pair) for pair in training.exposes(study.config)]
    return run


def write_training(directory: Path, run: dict[str, Any], own: Mapping[str, bytes]) -> None:
    """Put the results in place, run.json last. own: this party's files, readable by its owner alone and
    durable before that."""
    with tempfile.TemporaryDirectory(prefix=outdir.STAGING, dir=directory) as name:
        staging = Path(name)
        (staging / outdir.RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        render(staging)
        outdir.install(staging, directory, run, own)
