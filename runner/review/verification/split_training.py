"""What run.json says of a training of two owners: there is no table, and all but figures and times follows
from the study."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from mpc_protocols.functionality import Event, StudyFacts
from mpc_protocols.mechanisms.measurement import plan_marginals
from mpc_protocols.process.canonical_json import canonical
from runner.party.record.run_json import alignment_facts
from runner.party.synthesis import plan_of
from runner.review.verification.account import NO_CAP, close
from runner.review.verification.planned import owned_of
from runner.study import Study, VerticalStudy
from runner.study.trained import active_owner, training_of


def differing(study: Study, run: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What is stated otherwise than it follows, and what of the account; each as it is called there.

    Raises `KeyError`, `TypeError`, `ValueError` or a `CosynthError` for what makes no sense.
    """
    training, owned = training_of(study), owned_of(study, run)
    assert training is not None and owned is not None and isinstance(study, VerticalStudy)
    plan = plan_of(study).knowing(owned.columns)
    active = active_owner(study, owned)
    [passive] = [name for name in owned.owners if name != active]
    asked, told = training.evaluation(plan), run["evaluation"]
    expected = {
        "rows": 0,
        "selected": [],
        "alignment": alignment_facts(study, plan, owned),
        "model": {
            **training.described(study.config, study.domain, owned.of(passive)),
            "owners": {"active": active, "passive": passive},
        },
        "exposes": training.exposes(study.config),
    }
    other = [
        name
        for name, value in expected.items()
        if canonical(run[name]) != canonical(json.loads(json.dumps(value)))
    ]
    if told["people"] != ("own" if asked is None else "intersection") or (
        asked is not None and not close(told["rho"], float(plan.charges.measuring(asked.sigma2)))
    ):
        other.append("evaluation")
    return other, list(_account(run["privacy"], _events(study, plan, training), plan))


def _events(study: Study, plan: Any, training: Any) -> list[Event]:
    """Everything that is charged to the study's budget."""
    rate, asked = training.rate_event(plan), training.evaluation(plan)
    found = [] if rate is None else [rate]
    if asked is not None:
        privacy = study.privacy
        facts = StudyFacts(dict(asked.sizes), privacy.adjacency, privacy.unit.rows, NO_CAP, b"")
        found.append(plan_marginals(facts, [asked.clique], [asked.sigma2], 1, True).event)
    return found


def _account(privacy: Mapping[str, Any], events: list[Event], plan: Any) -> Iterator[str]:
    calibration = plan.budget.calibration
    expected = {
        "rho": plan.budget.rho_cap,
        "calibrated_epsilon": calibration.epsilon,
        "delta_for_zcdp": calibration.delta,
        "rho_spent": sum((event.rho for event in events), Fraction(0)),
        "beta": sum((event.beta for event in events), Fraction(0)),
    }
    for name, value in expected.items():
        if not math.isclose(privacy[name], float(value), rel_tol=1e-9, abs_tol=0.0):
            yield name
    stated = [{key: value for key, value in event.items() if key != "rho"} for event in privacy["events"]]
    told = [{"what": event.what, **event.detail} for event in events]
    if canonical(stated) != canonical(told) or not all(
        close(one["rho"], float(event.rho)) for one, event in zip(privacy["events"], events, strict=True)
    ):
        yield "events"
