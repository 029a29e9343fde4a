"""What a custodian's data has spent, may spend, and what one more run would add: the ledger's arithmetic.

One account per dataset (the custodian's name for a population). zCDP adds up over the runs of an account; runs on other people's
data at other custodians are disjoint and add nothing. The proofs are in `docs/design/accounts.md`.

Notion (1, 2). A sum of rho means something for one notion of neighbouring tables only (`notion.py`): the account's. What the cap
does not name of it is the first run's that spent anything. A run under another notion counts steps^2 of its rho, steps of its
samplers' distance; one that says nothing about this notion is refused under a cap. Where steps is not whole only Gaussian
releases count its square; selections, and what is reserved, that of the next whole number.

Cap (3). Before a run starts, (sum of rho, sum of beta) must come to at most (cap_epsilon, cap_delta), as a run's own budget does.
Without a cap the ledger only counts.

Sizes (7). What an alignment announces (events "alignment.size") comes on top of the study's rho: rho of a size to rho, its delta
to delta. Shown is the less of the sum by rho and the sum by epsilons (`Account.epsilon`), capped is rho alone
(`Account.epsilon_by_rho`).

Trainings (10). A training under Poisson samples has no rho but a curve (`synth.budget.sampled_gaussian`), which adds to the
sum of rho order by order. It says nothing about neighbours more than one of its own steps apart: there no sum holds.

A run that aligns counts against max_alignments from its reservation on, however it ends, and once
for each attempt in which it was resumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency
from parties.budget.notion import Notion, ProtectedUnit, covering
from parties.budget.open_run import RecordedEvent
from synth.budget.accounting import calibrate, epsilon_beside
from synth.budget.noisy_sizes import epsilon_of_both
from synth.budget.sampled_gaussian import SampledGaussian, curve_of

ALIGNMENT = "alignment."
"""How the names of events begin that are no releases of the study but of an alignment."""
STARTED = "alignment.started"
"""The event that an alignment puts on record before its first message."""
SIZE = "alignment.size"
"""Events of this kind are charged on top of the study's budget, their beta as delta."""
GAUSSIAN = frozenset({"measure", "distances", "total"})
"""Events whose rho is quadratic in the rows that move, whatever their number: these count the square of a fraction, too."""


@dataclass(frozen=True)
class Cap:
    """What a custodian allows its dataset to spend over all runs, and how many alignments with one counterparty.

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
class Proposal:
    """What a study asks of a custodian's data, as far as its refusal, or its consent, could tell a peer something.

    digest: the study's. domain: a digest of its columns and, after a "+", of a vertical study's [alignment] (min_size, pad_to and
    duplicates decide what fits, too); max_rows: its public bound; "" and 0 are not on record (older ledgers).
    """

    dataset: str
    study: str
    digest: str
    counterparties: tuple[str, ...]
    notion: Notion
    domain: str = ""
    max_rows: int = 0

    def differs(self, earlier: Proposal) -> tuple[str, ...]:
        """In which of domain, alignment, max_rows and unit it asks something else than an earlier one of the same dataset and
        peers."""
        if self.dataset != earlier.dataset or not set(self.counterparties) & set(earlier.counterparties):
            return ()
        (columns, _, matching), (other, _, before) = self.domain.partition("+"), earlier.domain.partition("+")
        compared = {
            "the domain": bool(columns and other) and columns != other,
            "the alignment": bool(matching and before) and matching != before,
            "max_rows": bool(self.max_rows and earlier.max_rows) and self.max_rows != earlier.max_rows,
            "the unit": self.notion.unit != earlier.notion.unit,
        }
        return tuple(what for what, differs in compared.items() if differs)


@dataclass(frozen=True)
class Refusal:
    """A proposal that this custodian refused before anything of its data was sent. code: its exit code; time: since 1970."""

    proposal: Proposal
    code: int
    time: float


@dataclass(frozen=True)
class Reservation:
    """A run as this custodian's ledger knows it before it starts.

    run: the session's public id. rho, beta: the caps that the run's own filter enforces. computes: False at a contributor.
    aligns: whether the run computes an alignment (vertical), which counts against max_alignments. size_rho, size_delta: sums over
    the sizes that its alignment will announce with noise (`psu.dummies.size_events`: rho and beta of each), on top of rho.
    domain, max_rows: as `Proposal` has them. curve: of the training that it may charge beside rho. waves: of a run over bundles,
    the digests by which waves of its table know one another, its own first (`parties.budget.waves`).
    """

    dataset: str
    run: str
    study: str
    digest: str
    epsilon: float
    delta: float
    notion: Notion
    rho: Fraction
    beta: Fraction
    counterparties: tuple[str, ...]
    computes: bool = True
    aligns: bool = False
    size_rho: Fraction = Fraction(0)
    size_delta: Fraction = Fraction(0)
    domain: str = ""
    max_rows: int = 0
    curve: SampledGaussian | None = None
    waves: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.rho, self.beta, self.size_rho, self.size_delta) < 0:
            raise StudyInvalid("A reservation needs rho, beta and what its sizes reveal of at least 0.")
        if (self.size_rho or self.size_delta) and not self.aligns:
            raise StudyInvalid("A reservation for the sizes of an alignment must say that its run aligns.")

    def resumes(self, other: Reservation) -> bool:
        """Whether it can be another attempt at the run that was reserved so: of the same study, promise and budget.

        Sizes differ, as those that were announced before stay charged; so does the digest, which names the session's CA.
        """
        return (
            self.study,
            self.epsilon,
            self.delta,
            self.notion,
            self.rho,
            self.beta,
            self.counterparties,
            self.computes,
            self.curve,
        ) == (
            other.study,
            other.epsilon,
            other.delta,
            other.notion,
            other.rho,
            other.beta,
            other.counterparties,
            other.computes,
            other.curve,
        )

    @property
    def charge(self) -> Charge:
        """What is charged for it until it is settled, under its own notion."""
        curves = () if self.curve is None else (self.curve,)
        return Charge(self.rho + self.size_rho, self.beta, self.size_rho, self.size_delta, curves)

    @property
    def proposal(self) -> Proposal:
        """What it asks of the dataset."""
        return Proposal(
            self.dataset,
            self.study,
            self.digest,
            self.counterparties,
            self.notion,
            self.domain,
            self.max_rows,
        )


@dataclass(frozen=True)
class Charge:
    """What is charged to a dataset: zCDP (sizes included), the samplers' statistical distance; rho and delta of the sizes; the
    curves of trainings, on top."""

    rho: Fraction = Fraction(0)
    beta: Fraction = Fraction(0)
    size_rho: Fraction = Fraction(0)
    size_delta: Fraction = Fraction(0)
    curves: tuple[SampledGaussian, ...] = ()

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.rho + other.rho,
            self.beta + other.beta,
            self.size_rho + other.size_rho,
            self.size_delta + other.size_delta,
            self.curves + other.curves,
        )

    def counts_at(self, steps: Fraction | None) -> bool:
        """Whether anything is known of it for neighbours that are so many steps apart: of curves, for one step only."""
        return steps is not None and (steps == 1 or not self.curves)

    def at(self, steps: Fraction) -> Charge:
        """The same for neighbours that are so many steps apart, of whatever releases it consists.

        rho: the square of the steps, rounded up to a whole number. beta: steps, for that many times the cells differ. A size's
        delta: delta (1 + e^epsilon + ... + e^((steps - 1) epsilon)) by group privacy of (epsilon, delta)-DP, epsilon at most the
        root of twice all sizes' rho.
        """
        if steps == 1:
            return self
        whole = math.ceil(steps)
        epsilon = math.nextafter(math.sqrt(2 * self.size_rho), math.inf)
        grown = self.size_delta
        if grown:
            most = (whole - 1) * epsilon
            powers = Fraction(math.exp(most) * (1 + 2**-40)) if most < 700 else Fraction(0)
            grown = min(Fraction(1), grown * whole * powers) if powers else Fraction(1)
        return Charge(self.rho * whole**2, self.beta * steps, self.size_rho * whole**2, grown, self.curves)


@dataclass(frozen=True)
class Entry:
    """A run on record. spent_...: what it is charged now: the reservation while open, then the events begun."""

    reservation: Reservation
    time: float
    state: Literal["open", "settled"]
    events: tuple[RecordedEvent, ...]

    @property
    def claimless(self) -> bool:
        """Whether it released what no epsilon bounds: an event says so, and its rho is what it was meant to cost."""
        return any(begun.event.detail.get("claim") == "none" for begun in self.events)

    @property
    def spent(self) -> Charge:
        """What the run is charged under its own notion."""
        if self.state == "open":
            return self.reservation.charge
        rho, delta = sizes_of(self.events)
        rest = [begun.event for begun in self.events if begun.event.what != SIZE]
        return Charge(
            sum((event.rho for event in rest), rho),
            sum((event.beta for event in rest), Fraction(0)),
            rho,
            delta,
            tuple(curve for event in rest if (curve := curve_of(event)) is not None),
        )

    def spent_at(self, steps: Fraction) -> Charge:
        """What it is charged for neighbours that are so many steps apart: of a settled run each event by its kind."""
        charge = self.spent.at(steps)
        if self.state == "open" or steps.denominator == 1:
            return charge
        gaussian = sum(
            (begun.event.rho for begun in self.events if begun.event.what in GAUSSIAN), Fraction(0)
        )
        return replace(charge, rho=charge.rho - gaussian * (math.ceil(steps) ** 2 - steps**2))

    def times(self, steps: Fraction) -> Fraction:
        """How often its rho counts for neighbours that are so many steps apart."""
        rho = self.spent.rho
        return self.spent_at(steps).rho / rho if rho else Fraction(math.ceil(steps) ** 2)


@dataclass(frozen=True)
class Account:
    """The runs of one dataset, added up for one notion. None of `notion`: nothing was spent, and nobody has named one."""

    entries: tuple[Entry, ...]
    notion: Notion | None

    @classmethod
    def of(cls, entries: Sequence[Entry], cap: Cap, asked: Notion | None = None) -> Account:
        """The account under a cap. asked: of a run that is about to start, the first if none has spent anything."""
        spenders = [entry.reservation.notion for entry in entries if entry.spent != Charge()]
        first = spenders[0] if spenders else asked
        if cap.unit is not None and cap.adjacency is not None:
            return cls(tuple(entries), Notion(cap.unit, cap.adjacency))
        if first is None:
            return cls(tuple(entries), None)
        unit, adjacency = cap.unit or first.unit, cap.adjacency or first.adjacency
        return cls(tuple(entries), Notion(unit, adjacency).of_account)

    @classmethod
    def shown(cls, entries: Sequence[Entry], cap: Cap) -> Account:
        """The account as it is shown: where there is no cap, for a notion under which all runs count, if there is one."""
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
        """The sum of what counts."""
        return sum((charge for _, _, charge in self._counted()), Charge())

    def epsilon_by_rho(self, delta: float | Fraction, more: Charge | None = None) -> float:
        """The epsilon, at this delta, of all these runs together as a cap counts it; infinite if no sum holds.

        more: what one more run would add, under this notion.
        """
        if self.uncounted:
            return math.inf
        spent = self.spent + (more or Charge())
        left = Fraction(delta) - spent.size_delta
        return epsilon_beside(spent.rho, left, spent.beta, spent.curves) if left > 0 else math.inf

    def epsilon(self, delta: float | Fraction) -> float:
        """The epsilon, at this delta, of all these runs together: sizes by their rho or by their epsilons, whichever is less.

        Only sizes that were announced have epsilons; those of an open reservation count by rho.
        """
        spent = self.spent
        left = Fraction(delta) - spent.size_delta
        if self.uncounted or left <= 0:
            return math.inf
        if spent.curves:
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


def sizes_of(events: Sequence[RecordedEvent]) -> tuple[Fraction, Fraction]:
    """rho and delta of the announced sizes among these events."""
    sizes = [begun.event for begun in events if begun.event.what == SIZE]
    return sum((event.rho for event in sizes), Fraction(0)), sum((event.beta for event in sizes), Fraction(0))


def aligned(entries: Sequence[Entry], counterparty: str) -> int:
    """How many alignments with this counterparty these runs are: one each, or as many as were started in its attempts."""
    return sum(
        max(1, attempts(entry.events))
        for entry in entries
        if entry.reservation.aligns and counterparty in entry.reservation.counterparties
    )


def attempts(events: Sequence[RecordedEvent]) -> int:
    """How many alignments are on record as started."""
    return sum(begun.event.what == STARTED for begun in events)


def ended(entry: Entry) -> bool:
    """Whether a contributor's run has ended normally: only then it is told the events, and settled with them. Of a bundle,
    whether it is settled at all: what it is settled by says that no run of the study will use one."""
    own = entry.reservation
    return entry.state == "settled" and not own.computes and bool(entry.events or own.waves)


def used_up(dataset: str, counterparty: str, done: int, allowed: int) -> str:
    """The sentence for a quota that allows no further alignment."""
    times = "once" if done == 1 else f"{done} times"
    return (
        f"{dataset} has been aligned {times} with {counterparty}, and max_alignments = {allowed} in the private file allows "
        "no more; raise it only if you accept what a further alignment tells that party."
    )


def check_cap(
    path: Path, asked: Reservation, cap: Cap, others: Sequence[Entry], own: Sequence[RecordedEvent] = ()
) -> None:
    """Raise `BudgetRefused` if the cap does not allow this run beside the others. path: the ledger's, for the sentence.

    own: the events of this run's earlier attempts.
    """
    if cap.max_alignments is not None and asked.aligns:
        for name in asked.counterparties:
            done = aligned(others, name) + attempts(own)
            if done >= cap.max_alignments:
                raise BudgetRefused(used_up(f"dataset {asked.dataset}", name, done, cap.max_alignments))
    if cap.epsilon is None or cap.delta is None:
        return
    if sentence := cap_problem(path, asked, cap, Account.of(others, cap, asked.notion)):
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
    more = asked.charge.at(steps)
    spent = account.spent + more
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
            "for a smaller epsilon or raise cap_epsilon."
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
