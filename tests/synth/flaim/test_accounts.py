"""Accounts of clients: what the leading party may ask for, and how often."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from mpc_protocols.functionality import Event
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.plan import FlaimPlan
from tests.synth.flaim.world import planned

INPUTS = b"i" * 32


def accounts(plan: FlaimPlan, recorded: list[Event] | None = None) -> ClientAccounts:
    noted = [] if recorded is None else recorded
    return ClientAccounts(plan, range(4), lambda event, inputs: noted.append(event))


@pytest.mark.parametrize("often", [1, 3])
def test_one_participation_too_many_is_refused_by_every_party(often: int) -> None:
    plan, recorded = planned(participations=often), list[Event]()
    guard = accounts(plan, recorded)
    guard.authorise(plan.size_event([0, 1, 2], [0, 1, 2]), INPUTS)
    for _ in range(often - 1):
        guard.authorise(plan.size_event([], [0, 1, 2]), INPUTS)
    with pytest.raises(BudgetRefused, match="Client 0 was invited once more"):
        guard.authorise(plan.size_event([3], [0, 1, 3]), INPUTS)
    assert len(recorded) == len(guard.events) == often
    assert guard.accounts[3].rho == 0
    guard.authorise(plan.size_event([3], [3]), INPUTS)
    assert guard.accounts[3].rho == plan.charges.counting(plan.size_sigma2)


def test_what_a_choice_or_a_size_costs_is_the_plans_and_not_the_leaders() -> None:
    plan, recorded = planned(), list[Event]()
    guard, cheap = accounts(plan, recorded), Fraction(1, 10**9)
    for lie in (
        replace(plan.size_event([0, 1, 2], [0, 1, 2]), rho=cheap),
        replace(plan.choice_event([0, 1, 2], 3), rho=cheap),
        replace(plan.choice_event([0, 1, 2], 3), beta=Fraction(0)),
        plan.size_event([0, 1], [0, 1, 2]),  # client 2 is new, and would not be charged
        Event("choices", cheap, cheap, {"charged": "everybody"}),
        Event("sum", cheap, cheap, {}),
        Event("true marginals", Fraction(0), Fraction(0), {"charged": [0], "claim": "none"}),
    ):
        with pytest.raises(ProtocolAborted, match="not the study's"):
            guard.authorise(lie, INPUTS)
    assert recorded == [] == guard.events and guard.most == 0


def test_a_client_that_is_at_its_budget_is_not_charged_and_nobody_with_it_is() -> None:
    plan, recorded = planned(), list[Event]()
    guard = accounts(plan, recorded)
    most = Event("sum", plan.budget.rho_cap, Fraction(0), {"charged": [0, 1]})
    guard.authorise(most, INPUTS)
    with pytest.raises(BudgetRefused):
        guard.authorise(plan.choice_event([1, 2], 3), INPUTS)
    assert guard.accounts[2].rho == 0 and recorded == [most]


def test_a_party_that_does_not_compute_keeps_its_own_account_only() -> None:
    plan = planned()
    guard = ClientAccounts(plan, [2])
    guard.authorise(plan.size_event([0, 2], [0, 1, 2]), INPUTS)  # whether 1 is new it cannot know
    assert list(guard.accounts) == [2] and guard.most == plan.charges.counting(plan.size_sigma2)
    with pytest.raises(ProtocolAborted):
        guard.authorise(plan.size_event([2], [2]), INPUTS)
