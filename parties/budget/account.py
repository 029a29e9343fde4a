"""What a custodian's data has spent over all runs, what it may spend, and whether there is room for one more.

One account per dataset (the custodian's name for a population). zCDP adds up over the runs of an account;
runs on other people's data at other custodians are disjoint and add nothing. The proofs are in
`docs/design/accounts.md`.

Notion (1, 2). The account's: what the cap does not name of it is the first run's that spent anything. A run
that says nothing about this notion is refused under a cap. As long as it is open which run will have been the
first, the cap must hold for each.

Cap (3). Before a run starts, (sum of rho, sum of beta) must come to at most (cap_epsilon, cap_delta), as a
run's own budget does. Without a cap the ledger only counts.

Sizes (7). Shown is the less of the sum by rho and the sum by epsilons (`Account.epsilon`), capped is rho
alone (`Account.epsilon_by_rho`).

A run that aligns counts against max_alignments from its reservation on, however it ends, and once
for each attempt in which it was resumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency
from parties.budget.apart import Charged, together
from parties.budget.notion import Notion, ProtectedUnit, covering
from parties.budget.spending import SIZE, Charge, Entry, Reservation, attempts
from synth.budget.accounting import calibrate, epsilon_beside
from synth.budget.noisy_sizes import epsilon_of_both


@dataclass(frozen=True)
class Cap:
    """What a custodian allows its dataset to spend over all runs, and how many alignments with one
    counterparty.

    unit, adjacency: for which notion the sum of rho is to hold; None: the account's first run fixes it.
    """

    epsilon: float | None = None
    delta: float | None = None
    max_alignments: int | None = None
    unit: ProtectedUnit | None = None
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise StudyInvalid("[ledger] needs cap_epsilon and cap_delta together, or neither.")
        if self.epsilon is not None and self.delta is not None:
            if not 0 < self.epsilon < float("inf"):
                raise StudyInvalid(
                    f"[ledger] cap_epsilon must be a finite number above 0, got {self.epsilon}."
                )
            if not 0 < self.delta < 1:
                raise StudyInvalid(f"[ledger] cap_delta must lie strictly between 0 and 1, got {self.delta}.")
        if self.max_alignments is not None and self.max_alignments < 0:
            raise StudyInvalid(f"[ledger] max_alignments must be at least 0, got {self.max_alignments}.")


@dataclass(frozen=True)
class Account:
    """The runs of one dataset, added up for one notion. None of `notion`: nothing was spent, and nobody has
    named one."""

    entries: tuple[Entry, ...]
    notion: Notion | None

    @classmethod
    def of(cls, entries: Sequence[Entry], cap: Cap, asked: Notion | None = None) -> Account:
        """The account under a cap. asked: of a run that is about to start, the first if none has spent
        anything."""
        spenders = [entry.reservation.notion for entry in entries if entry.spent != Charge()]
        first = spenders[0] if spenders else asked
        if cap.unit is not None and cap.adjacency is not None:
            return cls(tuple(entries), Notion(cap.unit, cap.adjacency))
        if first is None:
            return cls(tuple(entries), None)
        unit, adjacency = cap.unit or first.unit, cap.adjacency or first.adjacency
        return cls(tuple(entries), Notion(unit, adjacency).of_account)

    @classmethod
    def possible(cls, entries: Sequence[Entry], cap: Cap, asked: Reservation) -> Iterator[Account]:
        """The accounts that these runs and one that is asked for may turn out to be: what fixes the notion is
        the first run that spends anything, and of runs that are under way any may end without. entries:
        earlier attempts at `asked` included, which no account holds."""
        others = [entry for entry in entries if entry.reservation.run != asked.run]
        if cap.unit is not None and cap.adjacency is not None:
            yield cls.of(others, cap)
            return
        told: set[Notion | None] = set()
        for place, entry in enumerate(entries):
            is_own = entry.reservation.run == asked.run
            if entry.spent == Charge() and not is_own:
                continue
            left = tuple(each for each in entries[place:] if each.reservation.run != asked.run)
            account = cls(left, cls.of([], cap, entry.reservation.notion).notion)
            if account.notion not in told:  # the later of two of a notion holds less
                told.add(account.notion)
                yield account
            if entry.begun != Charge():
                return
        if all(entry.reservation.run != asked.run for entry in entries):
            account = cls((), cls.of([], cap, asked.notion).notion)
            if account.notion not in told:
                yield account

    @classmethod
    def of_entries(cls, entries: Sequence[Entry], cap: Cap) -> Account:
        """The account as it is shown: where there is no cap, for a notion under which all runs count, if
        there is one."""
        account = cls.of(entries, cap)
        if cap.epsilon is None and cap.unit is None and cap.adjacency is None and account.uncounted:
            wider = covering([entry.reservation.notion for entry in entries if entry.spent != Charge()])
            return cls(account.entries, wider or account.notion)
        return account

    def steps(self, notion: Notion) -> Fraction | None:
        """How often a run under this notion counts, before squaring; None if it cannot be counted."""
        return self.notion.steps(notion) if self.notion is not None else Fraction(1)

    @property
    def uncounted(self) -> tuple[Entry, ...]:
        """Runs that have spent something and say nothing about this notion: with any of them, no sum holds."""
        return tuple(
            entry
            for entry in self.entries
            if entry.spent != Charge() and not entry.spent.counts_at(self.steps(entry.reservation.notion))
        )

    @property
    def spent(self) -> Charge:
        """The sum of what counts, for one person (`apart.py`)."""
        return self.spent_with()

    def spent_with(self, *more: Charged) -> Charge:
        """The same with runs that would be added, each with its charge under this notion."""
        return together([*((entry.reservation, charge) for entry, _, charge in self._counted()), *more])

    def epsilon_by_rho(self, delta: float | Fraction, *more: Charged) -> float:
        """The epsilon, at this delta, of all these runs together as a cap counts it; infinite if no sum
        holds.

        more: what more runs would add, under this notion.
        """
        if self.uncounted:
            return math.inf
        spent = self.spent_with(*more)
        left = Fraction(delta) - spent.size_delta
        return epsilon_beside(spent.rho, left, spent.beta, spent.curves) if left > 0 else math.inf

    def epsilon(self, delta: float | Fraction) -> float:
        """The epsilon, at this delta, of all these runs together: sizes by their rho or by their epsilons,
        whichever is less.

        Only sizes that were announced have epsilons; those of an open reservation count by rho.
        """
        spent = self.spent
        left = Fraction(delta) - spent.size_delta
        if self.uncounted or left <= 0:
            return math.inf
        if spent.curves or any(entry.reservation.apart for entry in self.entries):
            return self.epsilon_by_rho(delta)
        announced = [
            math.ceil(steps) ** 2 * begun.event.rho
            for entry, steps, _ in self._counted()
            if entry.state == "settled"
            for begun in entry.events
            if begun.event.what == SIZE
        ]
        return epsilon_of_both(spent.rho, announced, left, spent.beta)

    def _counted(self) -> Iterator[tuple[Entry, Fraction, Charge]]:
        for entry in self.entries:
            steps = self.steps(entry.reservation.notion)
            if steps is not None and entry.spent.counts_at(steps):
                yield entry, steps, entry.spent_at(steps)


def aligned(entries: Sequence[Entry], counterparty: str) -> int:
    """How many alignments with this counterparty these runs are: one each, or as many as were started in its
    attempts."""
    return sum(
        max(1, attempts(entry.events))
        for entry in entries
        if entry.reservation.aligns and counterparty in entry.reservation.counterparties
    )


def used_up(dataset: str, counterparty: str, done: int, allowed: int) -> str:
    """The sentence for a quota that allows no further alignment."""
    times = "once" if done == 1 else f"{done} times"
    return (
        f"{dataset} has been aligned {times} with {counterparty}, and max_alignments = {allowed} in the private file allows "
        "no more; raise it only if you accept what a further alignment tells that party."
    )


def check_cap(path: Path, asked: Reservation, cap: Cap, entries: Sequence[Entry]) -> None:
    """Raise `BudgetRefused` if the cap does not allow this run beside the others. path: the ledger's, for the
    sentence.

    entries: of its data set, its own earlier attempts included.
    """
    own = [entry for entry in entries if entry.reservation.run == asked.run]
    others = [entry for entry in entries if entry.reservation.run != asked.run]
    if cap.max_alignments is not None and asked.aligns:
        for name in asked.counterparties:
            done = aligned(others, name) + sum(attempts(entry.events) for entry in own)
            if done >= cap.max_alignments:
                raise BudgetRefused(used_up(f"dataset {asked.dataset}", name, done, cap.max_alignments))
    if cap.epsilon is None or cap.delta is None:
        return
    for account in Account.possible(entries, cap, asked):
        if sentence := cap_problem(path, asked, cap, account):
            raise BudgetRefused(sentence)


def cap_problem(path: Path, asked: Reservation, cap: Cap, account: Account) -> str | None:
    """Why an account under a cap has no room for one more run; None if it has."""
    assert cap.epsilon is not None and cap.delta is not None and account.notion is not None
    own, steps = account.notion, account.steps(asked.notion)
    if steps is None:
        return (
            f"The cap of dataset {asked.dataset} holds for {own.words}, and this run's promise for {asked.notion.words}: "
            f"{own.why_not(asked.notion)}; ask for another unit or adjacency, or {_named(covering([own, asked.notion]))}."
        )
    if not asked.charge.counts_at(steps):
        return (
            f"The cap of dataset {asked.dataset} holds for {own.words}, and a training for {asked.notion.words} says nothing "
            "about neighbours farther apart; ask for another unit or adjacency."
        )
    if account.uncounted:
        other = account.uncounted[0].reservation
        notions = [entry.reservation.notion for entry in account.uncounted]
        return (
            f"The cap of dataset {asked.dataset} holds for {own.words}, and its earlier run of {other.study} for "
            f"{other.notion.words}: {own.why_not(other.notion)}; {_named(covering([own, *notions]))}."
        )
    more = asked, asked.charge.at(steps)
    spent = account.spent_with(more)
    left = Fraction(cap.delta) - spent.size_delta
    if left <= 0:
        return (
            f"The sizes that the alignments of dataset {asked.dataset} announce have together a delta of "
            f"{float(spent.size_delta):.3g}, and cap_delta = {cap.delta:.6g}; raise cap_delta, or ask for a "
            "smaller size_delta."
        )
    if spent.beta > Fraction(cap.delta) / 100:
        return (
            f"The samplers of dataset {asked.dataset}'s runs are together {float(spent.beta):.2g} from their exact "
            f"distributions, more than a hundredth of cap_delta = {cap.delta:.6g}; raise cap_delta."
        )
    room = calibrate(cap.epsilon, left, spent.beta)
    after = account.epsilon_by_rho(cap.delta, more)
    if (room is None or spent.curves or spent.rho > room.rho) and after > cap.epsilon:
        times = f", counted {_times(steps)} for {own.words}," if steps != 1 else ""
        before = _number(account.epsilon_by_rho(cap.delta))
        return (
            f"Dataset {asked.dataset} has spent epsilon {before}, this run{times} would make it "
            f"{_number(after, cap.epsilon)}, and the cap is {cap.epsilon:.6g} (at delta {cap.delta:.6g}; ledger {path}); ask "
            "for a smaller epsilon; only who answers for this data may raise cap_epsilon."
        )
    return None


def _named(notion: Notion | None) -> str:
    """What a custodian can do about notions that cannot be added up."""
    if notion is None:
        return "give this population's other unit a dataset, and a cap, of its own"
    return f'name what covers both: cap_unit = {notion.unit.key}, cap_adjacency = "{notion.adjacency}"'


def _times(steps: Fraction) -> str:
    return f"{math.ceil(steps) ** 2} times"


def _number(epsilon: float, other: float = math.inf) -> str:
    """With as many digits, at least 6, as tell it from the other."""
    if not math.isfinite(epsilon):
        return "above any number"
    digits = (f"{epsilon:.{places}g}" for places in range(6, 18))
    return next((text for text in digits if float(text) != other), str(epsilon))
