"""A custodian's privacy ledger: what its data has spent, over all runs, in a local SQLite file.

What it adds up to, and what a cap allows: `account.py`. What was refused before anything was sent is on
record, too (`refuse`): a peer that proposes studies learns something by each refusal
(`docs/design/accounts.md` 4).

A run costs (`docs/design/accounts.md` 9)

    open      the study's whole rho, from `reserve`, which is durable before the first share leaves
    settled   the sum of the events begun, each of them durable before the first opening message of its release leaves any party
    dead      its reservation, until it is known to be dead; a computing party's run is then settled to the events it had begun

While a run is open its events stand in a file of its own beside the ledger (`open_run.py`), which takes them
over.

Threat model: guards the custodian against its own mistakes and against counterparties that ask too often; who
can write the file can lie to it. Nothing private is in it: events are public facts of the release. File 0600,
folder of open runs 0700.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget import open_run
from parties.budget.account import Cap, aligned, check_cap
from parties.budget.ledger_file import OPEN_RUNS, default_path, exists, is_whole, rehearse, transaction
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.open_run import RecordedEvent, RunFile, as_recorded
from parties.budget.spending import (
    ALIGNMENT,
    SIZE,
    Charge,
    Entry,
    Proposal,
    Refusal,
    Reservation,
    ended,
    sizes_of,
)
from parties.budget.waves import check_waves
from synth.budget.sampled_gaussian import SampledGaussian, curve_of

_FIELDS = (
    "dataset, run, study, digest, time, epsilon, delta, adjacency, unit, rho, beta, counterparties, computes, aligns, "
    "state, size_rho, size_delta, domain, max_rows, curve, waves, apart"
)


class Ledger:
    """The ledger in one file, created when first used, whole or not at all. Safe with concurrent runs; every
    change is durable on return.

    Raises `BudgetRefused` also when the file cannot be read or written: a charge that cannot be recorded is
    not made.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()

    def reserve(
        self, reservation: Reservation, cap: Cap | None = None, recorded: int | None = None
    ) -> OpenRun:
        """Charge the run's whole rho, sizes included, before its first share leaves.

        recorded: how many of the run's releases this party knows to go on from: a ledger that knows more of
        them shows that its files were set back, and to go on would release anew what is charged already.
        None: nothing more is computed.

        A run that is resumed reserves again under its id. It keeps the events it has begun, and aligns again:
        that counts as one more alignment, and what its sizes revealed before stays charged beside what they
        will reveal now. A contributor's run that has ended is not resumed: its events would be another run's.
        Nor is a run resumed as one of another study. Raises `BudgetRefused` for these, if the dataset's cap
        or its quota of alignments forbids it, and if the ledger has charged another wave of the same table,
        or this one under another name (`waves.py`).
        """
        cap = cap or Cap()
        self._settle_dead()
        with self.transaction() as database:
            # without a cap, years of other runs need not be read
            entries = self._entries(database, reservation.dataset, None if cap != Cap() else reservation.run)
            events = [
                begun
                for entry in entries
                if entry.reservation.run == reservation.run
                for begun in entry.events
            ]
            earlier = sizes_of(events)
            releases = [begun.event for begun in events if not begun.event.what.startswith(ALIGNMENT)]
            own = [entry for entry in entries if entry.reservation.run == reservation.run]
            if not all(reservation.resumes(entry.reservation) for entry in own):
                raise BudgetRefused(
                    f"The run {reservation.run[:16]} is on record on dataset {reservation.dataset} as one of another study or "
                    "budget and is not resumed as this one; its parties must start a new one."
                )
            if all(entry.spent == Charge() for entry in own):  # else it is charged for this wave already
                check_waves(
                    self.path,
                    reservation.dataset,
                    reservation.run,
                    reservation.waves,
                    self._entries(database, None) if reservation.waves else [],
                )
            if recorded is not None and len(releases) > recorded:
                raise BudgetRefused(
                    f"The ledger {self.path} knows {len(releases)} releases of the run {reservation.run[:16]}, which would go on "
                    f"from {recorded}: a party's files were set back, and no release is made anew; start anew with --replace."
                )
            if any(map(ended, own)):
                raise BudgetRefused(
                    f"The run {reservation.run[:16]} has ended on dataset {reservation.dataset} and is not resumed; its parties "
                    "must start a new one."
                )
            left = (
                reservation.rho - sum((event.rho for event in releases), Fraction(0)),
                reservation.beta - sum((event.beta for event in releases), Fraction(0)),
            )
            sizes_left = (reservation.size_rho, reservation.size_delta)
            reservation = replace(
                reservation,
                aligns=reservation.aligns or any(earlier),
                size_rho=reservation.size_rho + earlier[0],
                size_delta=reservation.size_delta + earlier[1],
            )
            check_cap(self.path, reservation, cap, entries)
            number = self._insert(database, reservation)
            held = RunFile.take(self._open_run_path(number))
            if held is None:
                raise BudgetRefused(
                    f"The run {reservation.run} is already under way on dataset {reservation.dataset}; "
                    "wait for it to end."
                )
        return OpenRun(self, number, held, left, sizes_left, releases, reservation.curve)

    def has_ended(self, dataset: str, run: str) -> bool:
        """Whether this run of a contributor's has ended normally, and is charged its events."""
        with self.transaction() as database:
            return any(ended(entry) for entry in self._entries(database, dataset, run))

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All runs of the dataset (of all datasets), oldest first; runs that died are settled first. No file:
        no runs."""
        if not self.exists():
            return []
        self._settle_dead()
        with self.transaction() as database:
            return self._entries(database, dataset)

    def refuse(self, proposal: Proposal, code: int) -> None:
        """Put on record that this custodian has refused a study, before anything of its data was sent. code:
        its exit code."""
        with self.transaction() as database:
            database.execute(
                "INSERT INTO refusals (dataset, study, digest, time, code, adjacency, unit, counterparties, domain, max_rows) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    proposal.dataset,
                    proposal.study,
                    proposal.digest,
                    time.time(),
                    code,
                    proposal.notion.adjacency,
                    proposal.notion.unit.to_text(),
                    json.dumps(proposal.counterparties),
                    proposal.domain,
                    proposal.max_rows,
                ),
            )

    def refusals(self, dataset: str | None = None) -> list[Refusal]:
        """What was refused for the dataset (for all datasets), oldest first. No file: nothing."""
        if not self.exists():
            return []
        with self.transaction() as database:
            return [
                Refusal(
                    Proposal(
                        name,
                        study,
                        digest,
                        tuple(json.loads(peers)),
                        Notion(ProtectedUnit.from_text(unit), adjacency),
                        domain,
                        max_rows,
                    ),
                    code,
                    when,
                )
                for name, study, digest, when, code, adjacency, unit, peers, domain, max_rows in database.execute(
                    "SELECT dataset, study, digest, time, code, adjacency, unit, counterparties, domain, max_rows "
                    "FROM refusals WHERE :dataset IS NULL OR dataset = :dataset ORDER BY number",
                    {"dataset": dataset},
                )
            ]

    def alignments(self, dataset: str, counterparty: str) -> int:
        """How many alignments the dataset has computed with this counterparty."""
        return aligned(self.entries(dataset), counterparty)

    def _insert(self, database: sqlite3.Connection, reservation: Reservation) -> int:
        database.execute(
            f"INSERT INTO runs ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset, run) DO UPDATE SET rho = excluded.rho, beta = excluded.beta, aligns = excluded.aligns, "
            "size_rho = excluded.size_rho, size_delta = excluded.size_delta, waves = excluded.waves, state = 'open'",
            (
                reservation.dataset,
                reservation.run,
                reservation.study,
                reservation.digest,
                time.time(),
                reservation.epsilon,
                reservation.delta,
                reservation.notion.adjacency,
                reservation.notion.unit.to_text(),
                str(reservation.rho),
                str(reservation.beta),
                json.dumps(reservation.counterparties),
                reservation.computes,
                reservation.aligns,
                str(reservation.size_rho),
                str(reservation.size_delta),
                reservation.domain,
                reservation.max_rows,
                "" if reservation.curve is None else reservation.curve.to_text(),
                json.dumps(reservation.waves),
                json.dumps(reservation.apart),
            ),
        )
        (number,) = database.execute(
            "SELECT number FROM runs WHERE dataset = ? AND run = ?", (reservation.dataset, reservation.run)
        ).fetchone()
        return int(number)

    def _settle_dead(self) -> None:
        """Take over the files of all open runs, and settle the computing parties' runs that are known to be
        dead.

        A transaction of its own: it holds whatever becomes of what is asked next. A run's file goes only when
        what was in it is on disk here.
        """
        settled: list[Path] = []
        with self.transaction() as database:
            for number, computes in database.execute(
                "SELECT number, computes FROM runs WHERE state = 'open'"
            ).fetchall():
                path = self._open_run_path(number)
                dead = open_run.abandoned(path)  # before reading: a process that lives may still append
                try:
                    self._take_over(database, number, open_run.read(path))
                except ValueError:  # altered: nobody knows what it had begun, so the reservation stands
                    continue
                if dead and computes:
                    database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (number,))
                    settled.append(path)
        if settled:
            with self.transaction():  # a run that is resumed right now takes its file in one, too
                for path in settled:
                    with suppress(OSError):  # a file that stays is taken over again without effect
                        open_run.discard(path)

    def _entries(
        self, database: sqlite3.Connection, dataset: str | None, run: str | None = None
    ) -> list[Entry]:
        """The runs as they are on record, oldest first: of all datasets or of one, all of them or one."""
        wanted = "(:dataset IS NULL OR dataset = :dataset) AND (:run IS NULL OR run = :run)"
        names = {"dataset": dataset, "run": run}
        events: dict[int, list[RecordedEvent]] = {}
        for number, name, what, rho, beta, detail, when in database.execute(
            "SELECT run, id, what, rho, beta, detail, time FROM events "
            f"WHERE run IN (SELECT number FROM runs WHERE {wanted}) ORDER BY rowid",
            names,
        ):
            event = Event(what, Fraction(rho), Fraction(beta), json.loads(detail))
            events.setdefault(number, []).append(RecordedEvent(event, name, when))
        found = database.execute(f"SELECT number, {_FIELDS} FROM runs WHERE {wanted} ORDER BY number", names)
        return [_entry(fields, tuple(events.get(number, ()))) for number, *fields in found]

    def _take_over(self, database: sqlite3.Connection, number: int, begun: Sequence[RecordedEvent]) -> None:
        """Copy an open run's events, those that are not here yet."""
        database.executemany(
            "INSERT OR IGNORE INTO events (id, run, what, rho, beta, detail, time) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    each.id,
                    number,
                    each.event.what,
                    str(each.event.rho),
                    str(each.event.beta),
                    json.dumps(each.event.detail),
                    each.time,
                )
                for each in begun
            ],
        )

    def _settle(self, number: int, begun: Sequence[RecordedEvent]) -> None:
        with self.transaction() as database:
            self._take_over(database, number, begun)
            database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (number,))
        with suppress(OSError):  # a file that stays is taken over again without effect
            self._open_run_path(number).unlink()

    def _open_run_path(self, number: int) -> Path:
        return self.path.with_name(self.path.name + OPEN_RUNS) / str(number)

    def exists(self) -> bool:
        """Whether there is one yet. Raises `BudgetRefused` if there has been one (`ledger_file.exists`)."""
        return exists(self.path)

    def is_whole(self) -> bool:
        """Whether the file of a ledger that exists is undamaged. Raises `BudgetRefused`
        (`ledger_file.is_whole`)."""
        return is_whole(self.path)

    def rehearse(self) -> None:
        """Try whether a run could be charged here; nothing is left behind. Raises `BudgetRefused` as the run
        would."""
        rehearse(self.path)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One immediate transaction on a connection of its own (`ledger_file.transaction`)."""
        with transaction(self.path) as database:
            yield database


class OpenRun:
    """A run under way: holds its reservation, and the lock that shows it alive. One thread at a time."""

    def __init__(
        self,
        ledger: Ledger,
        number: int,
        file: RunFile,
        left: tuple[Fraction, Fraction],
        sizes_left: tuple[Fraction, Fraction],
        earlier: Sequence[Event] = (),
        curve: SampledGaussian | None = None,
    ) -> None:
        """left, sizes_left: (rho, beta) that events of the study, and sizes, may still have. earlier: the
        study's events that are begun already. curve: of the one training that may be begun."""
        self._earlier, self._curve = tuple(earlier), curve
        self._ledger, self._number, self._file, self._left, self._sizes_left = (
            ledger,
            number,
            file,
            left,
            sizes_left,
        )

    def begin(self, event: Event, release: int | None = None) -> None:
        """Record an event, before the first opening message of its release leaves. Durable on return.

        event: of the study's budget, or of kind `SIZE`, which what was reserved for sizes must cover; its
        detail is JSON-able. release: the number of the release, from 1, where a run is resumed: one that is
        begun already is the same event and is not charged again. Raises `BudgetRefused` if the events would
        exceed the reservation, or cannot be recorded.
        """
        self.begin_all([(event, release)])

    def begin_all(self, releases: Sequence[tuple[Event, int | None]]) -> None:
        """The same of several, in order, with one wait for the disk. Raises `BudgetRefused`, and then records none."""
        begun, left, sizes_left, curve = list[Event](), self._left, self._sizes_left, self._curve
        for event, release in releases:
            if release is not None and release <= len(self._earlier):
                if as_recorded(event) != self._earlier[release - 1]:
                    raise BudgetRefused(
                        f"Release {release} of this run is on record in the ledger {self._ledger.path} as another one; nothing "
                        "of it is opened."
                    )
                continue
            size = event.what == SIZE
            rho, beta = sizes_left if size else left
            if event.rho > rho or event.beta > beta:
                raise BudgetRefused(
                    f"The release {event.what} would exceed what this run reserved in the ledger "
                    f"{self._ledger.path}; nothing of it is opened."
                )
            asked = curve_of(event)
            if asked is not None:
                if asked != curve:
                    raise BudgetRefused(
                        f"The release {event.what} is not the training that this run reserved in the ledger {self._ledger.path}; "
                        "nothing is trained."
                    )
                curve = None
            rest = (rho - event.rho, beta - event.beta)
            left, sizes_left = (left, rest) if size else (rest, sizes_left)
            begun.append(event)
        self._file.append(*begun)
        self._left, self._sizes_left, self._curve = left, sizes_left, curve

    def settle(self) -> None:
        """The run is over: from now on it is charged the events begun. A contributor calls it only after a
        normal end."""
        try:
            begun = self._file.events()
        except (OSError, ValueError):
            raise BudgetRefused(
                f"The run's record beside the ledger {self._ledger.path} was altered, so its reservation stands "
                "in full."
            ) from None
        self._ledger._settle(self._number, begun)
        self.close()

    def close(self) -> None:
        """Let go without settling: what the death of the process does."""
        self._file.close()


def _entry(fields: Sequence[Any], events: tuple[RecordedEvent, ...]) -> Entry:
    """A row of `_FIELDS`."""
    (
        dataset,
        run,
        study,
        digest,
        when,
        epsilon,
        delta,
        adjacency,
        unit,
        rho,
        beta,
        counterparties,
        computes,
        aligns,
        state,
        size_rho,
        size_delta,
        domain,
        max_rows,
        curve,
        waves,
        apart,
    ) = fields
    reservation = Reservation(
        dataset,
        run,
        study,
        digest,
        epsilon,
        delta,
        Notion(ProtectedUnit.from_text(unit), adjacency),
        Fraction(rho),
        Fraction(beta),
        tuple(json.loads(counterparties)),
        bool(computes),
        bool(aligns),
        Fraction(size_rho),
        Fraction(size_delta),
        domain,
        max_rows,
        SampledGaussian.from_text(curve) if curve else None,
        tuple(json.loads(waves)),
        tuple(json.loads(apart)),
    )
    return Entry(reservation, when, state, events)
