"""What a party that obeys admits: the one step that the plan has for a question, and no other.

A leader sends a question with how it is to be opened: noise, event, who is charged, how many must have
chosen. None of that is believed. Clients and the others that compute build the step anew from the plan, the
question's content and who is asked, and compare (`docs/design/flaim.md` 4):

    register, columns, counts, drawn    a noisy sum, with the plan's noise, charged to all who are asked
    size, truth                         an exact sum: of sizes that are private already; of what the variant does not protect
    choose                              what at least a group of clients chose

No group, no answer: fewer clients than the plan's group are asked nothing.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import POPULAR, REVEAL, SUM, Asking, Event
from synth.algorithms.flaim.questions import Asked, parse, question_of

if TYPE_CHECKING:
    from synth.algorithms.flaim.plan import FlaimPlan


def admit(plan: FlaimPlan, step: Asking) -> None:
    """Raises `ProtocolAborted` for a step that is not the plan's."""
    asked = parse(step.question.content)
    distinct = len(set(step.clients)) == len(step.clients) >= plan.config.group
    if not distinct or not _offered(plan, asked) or step != _expected(plan, asked, step):
        raise ProtocolAborted(
            f"The leading party asks {len(step.clients)} clients for '{asked.kind}' otherwise than the study does; stop the run."
        )


def _offered(plan: FlaimPlan, asked: Asked) -> bool:
    """Whether the variant has such a question at all, in such a round."""
    variant, cliques = plan.variant, asked.cliques
    listed = bool(cliques) and len(set(cliques)) == len(cliques) and set(cliques) <= plan.candidates.keys()
    before = asked.round == 0
    within = 1 <= asked.round <= plan.config.rounds
    match asked.kind:
        case "register":
            return before and not cliques and plan.registration_sigma2 > 0
        case "truth":
            return before and listed and not variant.private
        case "size":
            return within and not cliques
        case "columns":
            return within and not cliques and (variant.columns or variant.starts_with_columns)
        case "drawn":
            return within and listed and variant.draws and len(cliques) == 1
        case _:
            return within and listed and variant.chooses


def _expected(plan: FlaimPlan, asked: Asked, step: Asking) -> Asking:
    """The plan's step for this question to these clients; a list may be compared again over some who have
    answered."""
    clients, none = list(step.clients), Fraction(0)
    same = replace(step, question=question_of(plan, asked), sigma2=none, cliques=(), least=0)
    if asked.kind == "choose":
        charged = _charged(step.event)
        if step.asked or not set(clients) <= set(charged):
            charged = clients
        event = plan.choice_event(charged, len(asked.cliques))
        return replace(same, kind=POPULAR, least=plan.config.group, event=event)
    once = replace(same, asked=True, among=None, event=Event("", none, none))
    if asked.kind == "size":
        event = plan.size_event([k for k in _charged(step.event) if k in clients], clients)
        return replace(once, kind=REVEAL, event=event)
    if asked.kind == "truth":
        return replace(once, kind=REVEAL, event=plan.exposed_event(clients, asked.cliques))
    sigma2 = plan.registration_sigma2 if asked.kind == "register" else plan.sigma2
    return replace(once, kind=SUM, sigma2=sigma2, cliques=tuple(asked.cliques or plan.one_way))


def _charged(event: Event) -> list[int]:
    named = event.detail.get("charged")
    return [k for k in named if type(k) is int] if isinstance(named, list) else []
