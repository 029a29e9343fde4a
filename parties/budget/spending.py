"""What a custodian's data has spent, may spend, and what one more run would add: the ledger's arithmetic.

One account per dataset (the custodian's name for a population; by default the place of the data, `source.Location.dataset`).
zCDP adds up over the runs of an account; runs on other people's data at other custodians are disjoint and add nothing
(`notes.md` 12.10). With a cap, epsilon(sum of rho, cap_delta) <= cap_epsilon is checked before a run starts; without one the
ledger only counts. The cap is compared as sum of rho <= rho(cap_epsilon, cap_delta), the same thing without rounding twice, and
the samplers' distances beta may take at most a hundredth of cap_delta. Runs under different adjacencies or units are added
as they are: each claim holds for its own notion of neighbour, and the rows say which.

Sizes. The study's (epsilon, delta) is what recipients see. Where an alignment announces noisy sizes (`psu.md` 3, events
"alignment.size"), the other owners see them on top, so a run that aligns reserves them on top of the study's rho. Such a
release is pure epsilon-DP but for its truncated tails, of probability delta: delta-approximate (epsilon^2/2)-zCDP (Bun-Steinke
2016, definition 8.1), so its rho adds to rho, and its delta (the event's beta) to delta without a factor: n runs together are
(epsilon(sum of rho, d), d + sum of size deltas)-DP for every d. By basic composition they are (epsilon(rho of the rest, d) +
sum of size epsilons, d + sum of size deltas)-DP as well. That is less where a few sizes are most of it, for zCDP's conversion
pays for Gaussian tails that sizes do not have: two sizes of 0.1 are 0.81 by rho at delta 1e-9, and 0.2 by their sum.

    shown     the less of both (`spent_epsilon`): what these runs are, taken as fixed beforehand
    capped    by rho alone (`epsilon_by_rho`, DESIGN 7): a cap must also bound runs that are chosen in view of earlier results.
              Sums of rho do (a zCDP filter: Feldman and Zrnic 2021); the less of two sums, each the one that holds after other
              results, does so only at twice the delta

A run that aligns counts against max_alignments from its reservation on, however it ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency
from parties.budget.open_run import Begun
from synth.accounting import epsilon_of, rho_of

SIZE = "alignment.size"
"""Events of this kind are charged on top of the study's budget, their beta as delta."""


@dataclass(frozen=True)
class Cap:
    """What a custodian allows its dataset to spend over all runs, and how many alignments with one counterparty."""

    epsilon: float | None = None
    delta: float | None = None
    max_alignments: int | None = None

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
class Reservation:
    """A run as this custodian's ledger knows it before it starts.

    run: the session's public id. rho, beta: the caps that the run's own filter enforces. computes: False at a contributor.
    aligns: whether the run computes an alignment (vertical), which counts against max_alignments. size_rho, size_delta: sums over
    the sizes that its alignment will announce with noise (`psu.dummies.size_events`: rho and beta of each), on top of rho.
    """

    dataset: str
    run: str
    study: str
    digest: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str
    rho: Fraction
    beta: Fraction
    counterparties: tuple[str, ...]
    computes: bool = True
    aligns: bool = False
    size_rho: Fraction = Fraction(0)
    size_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if min(self.rho, self.beta, self.size_rho, self.size_delta) < 0:
            raise StudyInvalid("A reservation needs rho, beta and what its sizes reveal of at least 0.")
        if (self.size_rho or self.size_delta) and not self.aligns:
            raise StudyInvalid("A reservation for the sizes of an alignment must say that its run aligns.")


@dataclass(frozen=True)
class Entry:
    """A run on record. spent_...: what it is charged now: the reservation while open, then the events begun."""

    reservation: Reservation
    time: float
    state: Literal["open", "settled"]
    events: tuple[Begun, ...]

    @property
    def spent_rho(self) -> Fraction:
        """zCDP charged to the dataset, sizes included."""
        if self.state == "open":
            return self.reservation.rho + self.reservation.size_rho
        return sum((begun.event.rho for begun in self.events), Fraction(0))

    @property
    def spent_beta(self) -> Fraction:
        """The samplers' statistical distance charged to the dataset."""
        if self.state == "open":
            return self.reservation.beta
        return sum((begun.event.beta for begun in self.events if begun.event.what != SIZE), Fraction(0))

    @property
    def spent_size_rho(self) -> Fraction:
        """What announced sizes take of `spent_rho`."""
        return self.reservation.size_rho if self.state == "open" else sizes_of(self.events)[0]

    @property
    def spent_size_delta(self) -> Fraction:
        """The delta of announced sizes, charged beside rho."""
        return self.reservation.size_delta if self.state == "open" else sizes_of(self.events)[1]


def epsilon_by_rho(
    entries: Sequence[Entry],
    delta: float | Fraction,
    rho: Fraction = Fraction(0),
    size_delta: Fraction = Fraction(0),
) -> float:
    """The epsilon, at this delta, of all these runs together as a cap counts it; infinite if their sizes take all of delta.

    rho (sizes included), size_delta: what one more run would add.
    """
    left = Fraction(delta) - sum((entry.spent_size_delta for entry in entries), size_delta)
    return epsilon_of(sum((entry.spent_rho for entry in entries), rho), left) if left > 0 else math.inf


def spent_epsilon(entries: Sequence[Entry], delta: float | Fraction) -> float:
    """The epsilon, at this delta, of all these runs together: sizes by their rho or by their epsilons, whichever is less.

    Only sizes that were announced have epsilons; those of an open reservation count by rho.
    """
    announced = [
        begun.event.rho
        for entry in entries
        if entry.state == "settled"
        for begun in entry.events
        if begun.event.what == SIZE
    ]
    left = Fraction(delta) - sum((entry.spent_size_delta for entry in entries), Fraction(0))
    rest = sum((entry.spent_rho for entry in entries), Fraction(0)) - sum(announced, Fraction(0))
    if left <= 0:
        return math.inf
    # rho = epsilon^2 / 2 of a size (`psu.dummies`)
    sizes = sum(math.nextafter(math.sqrt(2 * rho), math.inf) for rho in announced)
    return min(epsilon_by_rho(entries, delta), math.nextafter(epsilon_of(rest, left) + sizes, math.inf))


def sizes_of(events: Sequence[Begun]) -> tuple[Fraction, Fraction]:
    """rho and delta of the announced sizes among these events."""
    sizes = [begun.event for begun in events if begun.event.what == SIZE]
    return sum((event.rho for event in sizes), Fraction(0)), sum((event.beta for event in sizes), Fraction(0))


def aligned(entries: Sequence[Entry], counterparty: str) -> int:
    """How many of these runs align with this counterparty."""
    return sum(
        entry.reservation.aligns and counterparty in entry.reservation.counterparties for entry in entries
    )


def used_up(dataset: str, counterparty: str, done: int, allowed: int) -> str:
    """The sentence for a quota that allows no further alignment."""
    times = "once" if done == 1 else f"{done} times"
    return (
        f"{dataset} has been aligned {times} with {counterparty}, and max_alignments = {allowed} in the private file allows "
        "no more; raise it only if you accept what a further alignment tells that party."
    )


def check_cap(path: Path, asked: Reservation, cap: Cap, others: Sequence[Entry]) -> None:
    """Raise `BudgetRefused` if the cap does not allow this run beside the others. path: the ledger's, for the sentence."""
    if cap.max_alignments is not None and asked.aligns:
        for name in asked.counterparties:
            done = aligned(others, name)
            if done >= cap.max_alignments:
                raise BudgetRefused(used_up(f"dataset {asked.dataset}", name, done, cap.max_alignments))
    if cap.epsilon is None or cap.delta is None:
        return
    rho = sum((entry.spent_rho for entry in others), asked.rho + asked.size_rho)
    beta = sum((entry.spent_beta for entry in others), asked.beta)
    left = Fraction(cap.delta) - sum((entry.spent_size_delta for entry in others), asked.size_delta)
    if left <= 0:
        raise BudgetRefused(
            f"The sizes that the alignments of dataset {asked.dataset} announce have together a delta of "
            f"{cap.delta - float(left):.3g}, and cap_delta = {cap.delta:.6g}; raise cap_delta, or ask for a "
            "smaller size_delta."
        )
    if rho > rho_of(cap.epsilon, left):
        raise BudgetRefused(
            f"Dataset {asked.dataset} has spent epsilon {epsilon_by_rho(others, cap.delta):.6g}, this run would make it "
            f"{epsilon_by_rho(others, cap.delta, asked.rho + asked.size_rho, asked.size_delta):.6g}, and the cap is "
            f"{cap.epsilon:.6g} (at delta {cap.delta:.6g}; ledger {path}); ask for a smaller epsilon or raise cap_epsilon."
        )
    if beta > Fraction(cap.delta) / 100:
        raise BudgetRefused(
            f"The samplers of dataset {asked.dataset}'s runs are together {float(beta):.2g} from their exact "
            f"laws, more than a hundredth of cap_delta = {cap.delta:.6g}; raise cap_delta."
        )
