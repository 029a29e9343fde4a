"""Accounts of clients with disjoint records, charged side by side (parallel composition; `docs/design/flaim.md` 2.1).

An event names whose records it is about; each of these clients is charged all of it, the others nothing. The most that any record
has been charged is the largest account, and the budget binds every account by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from mpc_protocols.functionality import Event
from synth.budget.accounting import Accountant, Budget


@dataclass
class ClientAccounts:
    """A guard for a study of clients: an accountant for each. Raises `BudgetRefused` before any is charged."""

    budget: Budget
    clients: Iterable[int]
    accounts: dict[int, Accountant] = field(init=False)

    def __post_init__(self) -> None:
        self.accounts = {client: Accountant(self.budget) for client in self.clients}

    @property
    def most(self) -> Fraction:
        """The rho of the record that has been charged most."""
        return max((account.rho for account in self.accounts.values()), default=Fraction(0))

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Charge an event to the clients it names (`detail["charged"]`), or to none of them."""
        charged = [self.accounts[client] for client in cast(Sequence[int], event.detail["charged"])]
        for account in charged:
            Accountant(self.budget, rho=account.rho, beta=account.beta).authorise(event, inputs)
        for account in charged:
            account.authorise(event, inputs)
