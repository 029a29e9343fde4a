"""What one run asks of a custodian's data, and what it is charged.

A run is reserved before it starts and settled to the events that it began (`ledger.py`). zCDP adds up: what
the runs of a population come to, and whether a cap leaves room for one more, is `account.py`'s. Proofs:
`docs/design/accounts.md`.

Notion (1, 2). A sum of rho means something for one notion of neighbouring tables only (`notion.py`). For
another one a run counts steps^2 of its rho, steps of its samplers' distance. Where steps is not whole only
Gaussian releases count its square; selections, and what is reserved, that of the next whole number.

Sizes (7). What an alignment announces (events "alignment.size") comes on top of the study's rho: rho of a
size to rho, its delta to delta.

Trainings (10). A training under Poisson samples has no rho but a curve (`synth.budget.sampled_gaussian`),
which adds to the sum of rho order by order. It says nothing about neighbours more than one of its own steps
apart: there no sum holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from mpc_protocols.errors import StudyInvalid
from parties.budget.notion import Notion
from parties.budget.open_run import RecordedEvent
from synth.budget.sampled_gaussian import SampledGaussian, curve_of

ALIGNMENT = "alignment."
"""How the names of events begin that are no releases of the study but of an alignment."""
STARTED = "alignment.started"
"""The event that an alignment puts on record before its first message."""
SIZE = "alignment.size"
"""Events of this kind are charged on top of the study's budget, their beta as delta."""
GAUSSIAN = frozenset({"measure", "distances", "total"})
"""Events whose rho is quadratic in the rows that move, whatever their number: these count the square of a
fraction, too."""


@dataclass(frozen=True)
class Proposal:
    """What a study asks of a custodian's data, as far as its refusal, or its consent, could tell a peer
    something.

    digest: the study's. domain: a digest of its columns and, after a "+", of a vertical study's [alignment]
    (min_size, pad_to and duplicates decide what fits, too); max_rows: its public bound; "" and 0 are not on
    record (older ledgers).
    """

    dataset: str
    study: str
    digest: str
    counterparties: tuple[str, ...]
    notion: Notion
    domain: str = ""
    max_rows: int = 0

    def differs(self, earlier: Proposal) -> tuple[str, ...]:
        """In which of domain, alignment, max_rows and unit it asks something else than an earlier one of the
        same dataset and peers."""
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
    """A proposal that this custodian refused before anything of its data was sent. code: its exit code; time:
    since 1970."""

    proposal: Proposal
    code: int
    time: float


@dataclass(frozen=True)
class Reservation:
    """A run as this custodian's ledger knows it before it starts.

    run: the session's public id. rho, beta: the caps that the run's own filter enforces. computes: False at a
    contributor. aligns: whether the run computes an alignment (vertical), which counts against
    max_alignments. size_rho, size_delta: sums over the sizes that its alignment will announce with noise
    (`psu.dummies.size_events`: rho and beta of each), on top of rho. domain, max_rows: as `Proposal` has
    them. curve: of the training that it may charge beside rho. waves: of a run over bundles, the digests by
    which waves of its table know one another, its own first (`parties.budget.waves`). apart: sessions of
    releases in which nobody was who is in this run, as the study states (`parties.budget.apart`).
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
    apart: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.rho, self.beta, self.size_rho, self.size_delta) < 0:
            raise StudyInvalid("A reservation needs rho, beta and what its sizes reveal of at least 0.")
        if (self.size_rho or self.size_delta) and not self.aligns:
            raise StudyInvalid("A reservation for the sizes of an alignment must say that its run aligns.")

    def resumes(self, other: Reservation) -> bool:
        """Whether it can be another attempt at the run that was reserved so: of the same study, promise and
        budget.

        Sizes differ, as those that were announced before stay charged; so does the digest, which names the
        session's CA.
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
    """What is charged to a dataset: zCDP (sizes included), the samplers' statistical distance; rho and delta
    of the sizes; the curves of trainings, on top."""

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
        """Whether anything is known of it for neighbours that are so many steps apart: of curves, for one
        step only."""
        return steps is not None and (steps == 1 or not self.curves)

    def at(self, steps: Fraction) -> Charge:
        """The same for neighbours that are so many steps apart, of whatever releases it consists.

        rho: the square of the steps, rounded up to a whole number. beta: steps, for that many times the cells
        differ. A size's delta: delta (1 + e^epsilon + ... + e^((steps - 1) epsilon)) by group privacy of
        (epsilon, delta)-DP, epsilon at most the root of twice all sizes' rho.
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
        """Whether it released what no epsilon bounds: an event says so, and its rho is what it was meant to
        cost."""
        return any(begun.event.detail.get("claim") == "none" for begun in self.events)

    @property
    def spent(self) -> Charge:
        """What the run is charged under its own notion."""
        return self.reservation.charge if self.state == "open" else self.begun

    @property
    def begun(self) -> Charge:
        """What its events on record come to: it is charged this at least, whatever becomes of it."""
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
        """What it is charged for neighbours that are so many steps apart: of a settled run each event by its
        kind."""
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


def sizes_of(events: Sequence[RecordedEvent]) -> tuple[Fraction, Fraction]:
    """rho and delta of the announced sizes among these events."""
    sizes = [begun.event for begun in events if begun.event.what == SIZE]
    return sum((event.rho for event in sizes), Fraction(0)), sum((event.beta for event in sizes), Fraction(0))


def attempts(events: Sequence[RecordedEvent]) -> int:
    """How many alignments are on record as started."""
    return sum(begun.event.what == STARTED for begun in events)


def ended(entry: Entry) -> bool:
    """Whether a contributor's run has ended normally: only then it is told the events, and settled with them.
    Of a bundle, whether it is settled at all: what it is settled by says that no run of the study will use
    one."""
    own = entry.reservation
    return entry.state == "settled" and not own.computes and bool(entry.events or own.waves)
