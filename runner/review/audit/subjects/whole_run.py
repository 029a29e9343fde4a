"""A whole run of the subject's study in the clear, on rows of the audit: what it made, and what was charged.

A study whose owners train is run with two owners of half of the columns each.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.functionality import Event, unobserved
from runner.party.course.server_training import InTheClear, authorise
from runner.party.synthesis import facts_of, plan_of, synthesize
from runner.review.audit.subjects.in_memory.arena import Codes, Recorder, clear
from runner.review.audit.subjects.subject import Subject
from runner.study import Study
from runner.study.method import algorithm_of
from runner.study.trained import trained
from synth.algorithm import WhileArriving
from synth.plan import Plan
from synth.synthesis import Synthesis


@dataclass(frozen=True)
class WholeRun:
    """plan: as it was carried out."""

    synthesis: Synthesis
    plan: Plan
    events: tuple[Event, ...]


def not_run(study: Study) -> str | None:
    """Why a study is not run whole here, a sentence; None if it is. Clients, reports and arrivals would take
    more than rows."""
    if trained(study) is not None:
        return None
    algorithm = algorithm_of(study)
    asked = algorithm.cohorts(study.config) or algorithm.reporting(study.config)
    if asked is None and not isinstance(algorithm, WhileArriving):
        return None
    return f"The algorithm {study.algorithm} as configured asks no oracle of all rows: no whole run is made here."


def whole_run(subject: Subject, rows: Codes) -> WholeRun:
    """rows: codes, (rows, columns of the study)."""
    study = subject.study
    plan, algorithm = plan_of(study), trained(study)
    if algorithm is None:
        facts = facts_of(study, len(study.parties), bytes(32))
        made, events = clear(
            subject.clear, facts, [rows], lambda oracle: synthesize(study, plan, oracle, unobserved)
        )
        return WholeRun(made, plan, events)
    names = study.domain.names
    plan = plan.knowing({name: f"half {2 * i // len(names) + 1}" for i, name in enumerate(names)})
    guard, codes = Recorder(), {name: rows[:, i] for i, name in enumerate(names)}
    authorise(plan, guard, bytes(32))
    owners = {name: algorithm.owner(plan, name, codes, len(rows)) for name in algorithm.message_sizes(plan)}
    return WholeRun(algorithm.train(InTheClear(owners), plan, unobserved), plan, tuple(guard.events))
