"""Accounts of clients with disjoint records, charged side by side (parallel composition;
`docs/design/flaim.md` 2.1).

An event names whose records it is about; each of these clients is charged all of it, the others nothing. The
most that any record has been charged is the largest account, and the budget binds every account by itself.
Participations are counted here too, by invitations, and what a client's own noise costs is what the plan
says, not what the leading party says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from mpc_protocols.functionality import Asking, Event, Guard
from synth.algorithm import CHOICES
from synth.algorithms.flaim.admission import admit
from synth.algorithms.flaim.plan import SIZES, TRUTH, FlaimPlan
from synth.budget.accounting import Accountant


@dataclass
class ClientAccounts(Guard):
    """A guard for a study of clients: an accountant for each of `clients`; a party that does not compute
    keeps its own only.

    record: puts an event on disk, before anything of it is opened. events: what was authorised, in order.
    """

    plan: FlaimPlan
    clients: Iterable[int]
    record: Callable[[Event, bytes], None] | None = None
    accounts: dict[int, Accountant] = field(init=False)
    events: list[Event] = field(default_factory=list)
    _invited: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.accounts = {client: Accountant(self.plan.budget) for client in self.clients}
        self._invited = dict.fromkeys(self.accounts, 0)

    @property
    def most(self) -> Fraction:
        """The rho of the record that has been charged most."""
        return max((account.rho for account in self.accounts.values()), default=Fraction(0))

    def admit(self, step: Asking) -> None:
        """See `StepGuard`."""
        admit(self.plan, step)

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Charge an event to the clients it names (`detail["charged"]`), or to none of them.

        Raises `BudgetRefused` (the budget of a client, one participation too many), `ProtocolAborted` (an
        event that is not the plan's).
        """
        charged = _clients(event, "charged")
        invited = self._check_sizes(event, charged) if event.what == SIZES else ()
        candidates = event.detail.get("candidates")
        if event.what == CHOICES and event != self.plan.choice_event(charged, cast(int, candidates)):
            raise _unlike(event)
        if event.what == TRUTH and self.plan.variant.private:
            raise _unlike(event)
        own = [self.accounts[client] for client in charged if client in self.accounts]
        for account in own:
            Accountant(self.plan.budget, rho=account.rho, beta=account.beta).authorise(event, inputs)
        if self.record is not None:
            self.record(event, inputs)
        self.events.append(event)
        for account in own:
            account.authorise(event, inputs)
        for client in invited:
            self._invited[client] += 1

    def _check_sizes(self, event: Event, charged: list[int]) -> Sequence[int]:
        """Those who are invited, of the clients whose accounts are kept here."""
        invited = _clients(event, "invited")
        known = [client for client in invited if client in self.accounts]
        new = [client for client in known if not self._invited[client]]
        if (
            event != self.plan.size_event(charged, invited)
            or [k for k in charged if k in self.accounts] != new
        ):
            raise _unlike(event)
        for client in known:
            if self._invited[client] >= self.plan.participations:
                raise BudgetRefused(
                    f"Client {client} was invited once more than the {self.plan.participations} times that the study allows; "
                    "nothing is released."
                )
        return known


def _clients(event: Event, key: str) -> list[int]:
    named = event.detail.get(key)
    if not isinstance(named, list) or not all(type(client) is int for client in named):
        raise _unlike(event)
    return named


def _unlike(event: Event) -> ProtocolAborted:
    return ProtocolAborted(
        f"The leading party announced an event '{event.what:.40}' that is not the study's; stop the run."
    )
