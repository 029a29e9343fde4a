"""What clients and followers of a FLAIM study admit: the plan's steps, and nothing that a leader makes of
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import POPULAR, REVEAL, SUM, Clique, Event
from mpc_protocols.public.cohorts.steps import CohortStep
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.config import FlaimConfig
from synth.algorithms.flaim.plan import FlaimPlan, plan
from synth.algorithms.flaim.questions import Asked, question_of
from synth.domain import Codes, Domain
from synth.workload import Workload
from tests.synth.flaim.world import planned

COHORT = (0, 1, 2)
PAIRS: tuple[Clique, ...] = (("a", "b"), ("a", "c"))
NOTHING = Event("anything", Fraction(0), Fraction(0), {"charged": []})


def step_of(plan: FlaimPlan, kind: str, clients: tuple[int, ...] = COHORT) -> CohortStep:
    """What an honest leader sends."""
    if kind == "choose":
        question = question_of(plan, Asked("choose", 1, PAIRS, 600, b"model"))
        event = plan.choice_event(list(clients), len(PAIRS))
        return CohortStep(POPULAR, question, clients, least=plan.config.group, event=event)
    if kind == "size":
        event = plan.size_event(list(clients), list(clients))
        return CohortStep(REVEAL, question_of(plan, Asked("size", 1)), clients, event=event)
    if kind == "truth":
        question = question_of(plan, Asked("truth", 0, PAIRS))
        return CohortStep(REVEAL, question, clients, event=plan.exposed_event(list(clients), PAIRS))
    if kind == "register":
        question, sigma2 = question_of(plan, Asked("register", 0)), plan.registration_sigma2
        return CohortStep(SUM, question, clients, sigma2=sigma2, cliques=tuple(plan.one_way))
    named: tuple[Clique, ...] = {"counts": PAIRS, "drawn": PAIRS[:1], "columns": ()}[kind]
    question, cliques = question_of(plan, Asked(kind, 1, named)), named or tuple(plan.one_way)
    return CohortStep(SUM, question, clients, sigma2=plan.sigma2, cliques=cliques)


KINDS = {
    "private": ("size", "columns", "choose", "counts"),
    "light": ("register", "size", "choose", "counts"),
    "naive": ("size", "columns", "choose", "counts"),
    "oracle": ("size", "columns", "truth", "choose", "counts"),
    "random": ("size", "columns", "drawn"),
    "bayes": ("size", "columns"),
}


@pytest.mark.parametrize("variant", KINDS)
def test_the_steps_of_a_variant_are_admitted_and_those_of_another_are_not(variant: str) -> None:
    of = planned(variant)
    guard = ClientAccounts(of, [1])
    for kind in ("register", "size", "columns", "choose", "counts", "drawn"):
        if kind in KINDS[variant]:
            guard.admit(step_of(of, kind))
        else:
            with pytest.raises(ProtocolAborted, match=f"'{kind}' otherwise than the study does"):
                guard.admit(step_of(of, kind))
    truth = step_of(planned("oracle"), "truth")
    if variant == "oracle":
        guard.admit(truth)
    else:
        with pytest.raises(ProtocolAborted, match="'truth' otherwise"):
            guard.admit(replace(truth, question=question_of(of, Asked("truth", 0, PAIRS))))


def asked(step: CohortStep, **changes: Any) -> CohortStep:
    return replace(step, question=replace(step.question, **changes))


LIES: list[tuple[str, str, Callable[[FlaimPlan, CohortStep], CohortStep]]] = [
    ("exact counts", "columns", lambda of, s: CohortStep(REVEAL, s.question, s.clients, event=NOTHING)),
    ("exact counts", "counts", lambda of, s: CohortStep(REVEAL, s.question, s.clients, event=NOTHING)),
    ("counts compared", "counts", lambda of, s: replace(step_of(of, "choose"), question=s.question)),
    ("little noise", "columns", lambda of, s: replace(s, sigma2=Fraction(1, 64))),
    ("more noise", "columns", lambda of, s: replace(s, sigma2=2 * s.sigma2)),
    ("other names", "columns", lambda of, s: replace(s, cliques=s.cliques[:1])),
    ("no group", "columns", lambda of, s: step_of(of, "columns", (0, 1))),
    ("one client as a group", "columns", lambda of, s: step_of(of, "columns", (1, 1, 1))),
    ("no group", "choose", lambda of, s: step_of(of, "choose", (0, 1))),
    ("a choice of one", "choose", lambda of, s: replace(s, least=1)),
    ("a choice of many", "choose", lambda of, s: replace(s, least=4)),
    ("cheap", "choose", lambda of, s: replace(s, event=replace(s.event, rho=Fraction(1, 10**9)))),
    ("for others", "choose", lambda of, s: replace(s, event=of.choice_event([0, 2], 2))),
    ("votes revealed", "choose", lambda of, s: CohortStep(REVEAL, s.question, s.clients, event=s.event)),
    ("a name for it", "size", lambda of, s: replace(s, event=NOTHING)),
    ("noise on a size", "size", lambda of, s: CohortStep(SUM, s.question, s.clients, sigma2=of.sigma2)),
    ("charged too little", "columns", lambda of, s: asked(s, sensitivity2=1)),
    ("a wider bound", "columns", lambda of, s: asked(s, bound=1 << 29)),
    ("another length", "columns", lambda of, s: asked(s, length=3)),
    (
        "one marginal twice",
        "counts",
        lambda of, s: replace(
            s, question=question_of(of, Asked("counts", 1, PAIRS[:1] * 2)), cliques=PAIRS[:1] * 2
        ),
    ),
    (
        "a round too late",
        "columns",
        lambda of, s: replace(s, question=question_of(of, Asked("columns", of.config.rounds + 1))),
    ),
]


@pytest.mark.parametrize(("kind", "lie"), [lie[1:] for lie in LIES], ids=[": ".join(lie[:2]) for lie in LIES])
def test_what_a_leader_makes_of_a_question_is_not_admitted(
    kind: str, lie: Callable[[FlaimPlan, CohortStep], CohortStep]
) -> None:
    of = planned()
    guard, step = ClientAccounts(of, [1]), step_of(of, kind)
    guard.admit(step)
    with pytest.raises(ProtocolAborted, match="otherwise than the study does"):
        guard.admit(lie(of, step))


def test_a_list_is_compared_again_over_a_group_that_has_answered() -> None:
    of = planned()
    guard, step = ClientAccounts(of, range(5)), step_of(of, "choose", (0, 1, 2, 3))
    guard.admit(replace(step, clients=COHORT, asked=False, among=(1,)))
    for clients in ((0, 1), (0, 1, 4)):
        with pytest.raises(ProtocolAborted, match="otherwise"):
            guard.admit(replace(step, clients=clients, asked=False))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_study_of_units_of_several_rows_is_carried_out_to_its_end(adjacency: Any) -> None:
    """Sums charge statistical distance for as many entries as the plan was calibrated for."""
    names = ("a", "b", "c")
    domain = Domain(names, tuple(Codes(400) for _ in names))
    workload = Workload.from_spec({"degree": 2}, domain)
    for variant, kinds in KINDS.items():
        config = FlaimConfig(variant=variant)
        of = plan(domain, workload, config, epsilon=2.0, delta=1e-5, adjacency=adjacency, unit_rows=40)
        of = replace(of, max_rows=4096)
        guard = ClientAccounts(of, COHORT)
        for number, kind in enumerate(kinds):
            step = step_of(of, kind)
            guard.admit(step)
            guard.authorise(step.charge, bytes([number]) * 32)
        for account in guard.accounts.values():
            assert account.rho <= of.budget.rho_cap and account.beta <= of.budget.beta_cap
