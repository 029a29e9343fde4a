"""A custodian's privacy ledger: what its data has spent, over all runs, in a local SQLite file.

One account per dataset (the custodian's name for a population; by default the place of the data, `source.Location.dataset`).
zCDP adds up over the runs of an account; runs on other people's data at other custodians are disjoint and add nothing
(`notes.md` 12.10). With a cap, epsilon(sum of rho, cap_delta) <= cap_epsilon is checked before a run starts; without one the
ledger only counts. The cap is compared as sum of rho <= rho(cap_epsilon, cap_delta), the same thing without rounding twice, and
the samplers' distances beta may take at most a hundredth of cap_delta. Runs under different adjacencies or units are added
as they are: each claim holds for its own notion of neighbour, and the rows say which.

What a run costs (DESIGN 5, `mechanisms.md` 4):

    open      the study's whole rho, from `reserve`, which is durable before the first share leaves
    settled   the sum of the events begun. `begin` is durable before the first opening message of its release leaves any
              party (all parties compare transcripts between begin and opening), so the events begun cover what was opened
    dead      a run whose process ended without settling: while it lives its reservation stands; once it is known to be dead,
              a computing party's run is settled to the events it had begun. A contributor does not see releases happen and
              cannot know how far the others got: its reservation stands for good unless the run ended normally, when the
              computing parties have told it the events (`begin` each, then `settle`)

A run is known to be dead when the lock that its process holds on a file beside the ledger is free: the kernel releases it
however the process ends (kill -9, power), and keeps it while the process is merely stopped. No lock file: not known, so the
reservation stands. A run that is resumed reserves again under its id, which keeps the events it had begun.

Threat model: guards the custodian against its own mistakes and against counterparties that ask too often; who can write the
file can lie to it. Nothing private is in it: events are public facts of the release. File 0600, locks beside it 0700.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency, Event
from synth.accounting import epsilon_of, rho_of

_VERSION = 1
_PATIENCE_S = 30.0  # how long to wait for another run's transaction, which takes milliseconds

_FIELDS = "dataset, run, study, digest, time, epsilon, delta, adjacency, unit, rho, beta, counterparties, computes, aligns, state"
_SCHEMA = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, run TEXT NOT NULL, study TEXT NOT NULL,
    digest TEXT NOT NULL, time REAL NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL,
    unit TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL, counterparties TEXT NOT NULL, computes INTEGER NOT NULL,
    aligns INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'settled')), UNIQUE (dataset, run)
);
CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs (number), what TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL,
    detail TEXT NOT NULL, time REAL NOT NULL
);
"""


def default_path() -> Path:
    """`COSYNTH_LEDGER`, else cosynth/ledger.db under the user's data directory (`XDG_DATA_HOME`, ~/.local/share)."""
    if named := os.environ.get("COSYNTH_LEDGER"):
        return Path(named)
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share") / "cosynth" / "ledger.db"


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
                raise StudyInvalid(f"[ledger] cap_epsilon must be a finite number above 0, got {self.epsilon}.")
            if not 0 < self.delta < 1:
                raise StudyInvalid(f"[ledger] cap_delta must lie strictly between 0 and 1, got {self.delta}.")
        if self.max_alignments is not None and self.max_alignments < 0:
            raise StudyInvalid(f"[ledger] max_alignments must be at least 0, got {self.max_alignments}.")


@dataclass(frozen=True)
class Reservation:
    """A run as this custodian's ledger knows it before it starts.

    run: the session's public id. rho, beta: the caps that the run's own filter enforces. computes: False at a contributor.
    aligns: whether the run computes an alignment (vertical), which counts against max_alignments.
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

    def __post_init__(self) -> None:
        if self.rho < 0 or self.beta < 0:
            raise StudyInvalid("a reservation needs rho and beta of at least 0.")


@dataclass(frozen=True)
class Begun:
    """An event on record, with the time (seconds since 1970) it was recorded."""

    event: Event
    time: float


@dataclass(frozen=True)
class Entry:
    """A run on record. spent_rho, spent_beta: what it is charged now: the reservation while open, then the events begun."""

    reservation: Reservation
    time: float
    state: Literal["open", "settled"]
    events: tuple[Begun, ...]

    @property
    def spent_rho(self) -> Fraction:
        """zCDP charged to the dataset."""
        if self.state == "open":
            return self.reservation.rho
        return sum((begun.event.rho for begun in self.events), Fraction(0))

    @property
    def spent_beta(self) -> Fraction:
        """Statistical distance charged to the dataset."""
        if self.state == "open":
            return self.reservation.beta
        return sum((begun.event.beta for begun in self.events), Fraction(0))


class Ledger:
    """The ledger in one file, created when first used. Safe with concurrent runs; every change is durable on return.

    Raises `BudgetRefused` also when the file cannot be read or written: a charge that cannot be recorded is not made.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()

    def reserve(self, reservation: Reservation, cap: Cap | None = None) -> OpenRun:
        """Charge the run's whole rho, before its first share leaves. Raises `BudgetRefused` if the dataset's cap forbids it."""
        cap = cap or Cap()
        with self._transaction() as database:
            others = [entry for entry in self._swept(database, reservation.dataset) if entry.reservation.run != reservation.run]
            _check_cap(self.path, reservation, cap, others)
            number = self._insert(database, reservation)
            lock = _take(self._lock_path(number))
            if lock is None:
                raise BudgetRefused(f"the run {reservation.run} is already under way on dataset {reservation.dataset}; "
                                    "wait for it to end.")
            run = OpenRun(self, number, lock)
        return run

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All runs of the dataset (of all datasets), oldest first; runs that died are settled first. No file: no runs."""
        if not self.path.exists():
            return []
        with self._transaction() as database:
            return self._swept(database, dataset)

    def alignments(self, dataset: str, counterparty: str) -> int:
        """How many alignments the dataset has computed with this counterparty."""
        return _aligned(self.entries(dataset), counterparty)

    def _insert(self, database: sqlite3.Connection, reservation: Reservation) -> int:
        database.execute(
            f"INSERT INTO runs ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open') "
            "ON CONFLICT (dataset, run) DO UPDATE SET rho = excluded.rho, beta = excluded.beta, state = 'open'",
            (reservation.dataset, reservation.run, reservation.study, reservation.digest, time.time(), reservation.epsilon,
             reservation.delta, reservation.adjacency, reservation.unit, str(reservation.rho), str(reservation.beta),
             json.dumps(reservation.counterparties), reservation.computes, reservation.aligns))
        (number,) = database.execute("SELECT number FROM runs WHERE dataset = ? AND run = ?",
                                     (reservation.dataset, reservation.run)).fetchone()
        return int(number)

    def _swept(self, database: sqlite3.Connection, dataset: str | None) -> list[Entry]:
        """The entries, after settling the computing parties' runs that are known to be dead."""
        for (number,) in database.execute("SELECT number FROM runs WHERE state = 'open' AND computes").fetchall():
            if _abandoned(self._lock_path(number)):
                database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (number,))
        events: dict[int, list[Begun]] = {}
        for run, what, rho, beta, detail, when in database.execute(
                "SELECT run, what, rho, beta, detail, time FROM events ORDER BY rowid"):
            event = Event(what, Fraction(rho), Fraction(beta), json.loads(detail))
            events.setdefault(run, []).append(Begun(event, when))
        found = database.execute(f"SELECT number, {_FIELDS} FROM runs WHERE ? IS NULL OR dataset = ? ORDER BY number",
                                 (dataset, dataset))
        return [_entry(fields, tuple(events.get(number, ()))) for number, *fields in found]

    def _lock_path(self, number: int) -> Path:
        return self.path.with_name(self.path.name + ".locks") / str(number)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One immediate transaction on a connection of its own: no state is shared between threads or survives a failure."""
        try:
            _create(self.path)
            database = sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = EXTRA")  # durable on return, the journal's removal included
                database.execute("BEGIN IMMEDIATE")
                _migrate(self.path, database)
                yield database
                database.execute("COMMIT")
            finally:
                database.close()  # without COMMIT: rolled back
        except (sqlite3.Error, OSError, ValueError) as error:
            reason = type(error).__name__
        else:
            return
        raise BudgetRefused(f"the ledger {self.path} cannot be used ({reason}), so nothing can be charged to it; check that "
                            "it is a Cosynth ledger, that this user may write it and that the disk is not full.")


class OpenRun:
    """A run under way: holds its reservation, and the lock that shows it alive. Threads may share it."""

    def __init__(self, ledger: Ledger, number: int, lock: int) -> None:
        self._ledger, self._number, self._lock = ledger, number, lock

    def begin(self, event: Event) -> None:
        """Record an event, before the first opening message of its release leaves. Durable on return.

        event.detail: JSON-able. Raises `BudgetRefused` if the events would exceed the reservation, or cannot be recorded.
        """
        detail = json.dumps(dict(event.detail), allow_nan=False)
        with self._ledger._transaction() as database:
            (reserved,) = database.execute("SELECT rho FROM runs WHERE number = ?", (self._number,)).fetchone()
            begun = database.execute("SELECT rho FROM events WHERE run = ?", (self._number,)).fetchall()
            if sum((Fraction(rho) for (rho,) in begun), event.rho) > Fraction(reserved):
                raise BudgetRefused(f"the release {event.what} would exceed what this run reserved in the ledger "
                                    f"{self._ledger.path}; nothing of it is opened.")
            database.execute("INSERT INTO events (run, what, rho, beta, detail, time) VALUES (?, ?, ?, ?, ?, ?)",
                             (self._number, event.what, str(event.rho), str(event.beta), detail, time.time()))

    def settle(self) -> None:
        """The run is over: from now on it is charged the events begun. A contributor calls it only after a normal end."""
        with self._ledger._transaction() as database:
            database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (self._number,))
            self._ledger._lock_path(self._number).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Give up the lock without settling: what the death of the process does."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _entry(fields: Sequence[Any], events: tuple[Begun, ...]) -> Entry:
    """A row of `_FIELDS`."""
    (dataset, run, study, digest, when, epsilon, delta, adjacency, unit, rho, beta, counterparties, computes, aligns,
     state) = fields
    reservation = Reservation(dataset, run, study, digest, epsilon, delta, adjacency, unit, Fraction(rho), Fraction(beta),
                              tuple(json.loads(counterparties)), bool(computes), bool(aligns))
    return Entry(reservation, when, state, events)


def spent_epsilon(entries: Sequence[Entry], delta: float) -> float:
    """The epsilon, at this delta, of all these runs together."""
    return epsilon_of(sum((entry.spent_rho for entry in entries), Fraction(0)), delta)


def _aligned(entries: Sequence[Entry], counterparty: str) -> int:
    return sum(entry.reservation.aligns and counterparty in entry.reservation.counterparties for entry in entries)


def _check_cap(path: Path, asked: Reservation, cap: Cap, others: Sequence[Entry]) -> None:
    if cap.max_alignments is not None and asked.aligns:
        for name in asked.counterparties:
            done = _aligned(others, name)
            if done >= cap.max_alignments:
                raise BudgetRefused(f"dataset {asked.dataset} has been aligned {done} times with {name}, and max_alignments = "
                                    f"{cap.max_alignments} in the private file allows no more.")
    if cap.epsilon is None or cap.delta is None:
        return
    spent = sum((entry.spent_rho for entry in others), Fraction(0))
    beta = sum((entry.spent_beta for entry in others), asked.beta)
    if spent + asked.rho > rho_of(cap.epsilon, cap.delta):
        raise BudgetRefused(
            f"dataset {asked.dataset} has spent epsilon {epsilon_of(spent, cap.delta):.6g}, this run would make it "
            f"{epsilon_of(spent + asked.rho, cap.delta):.6g}, and the cap is {cap.epsilon:.6g} (at delta {cap.delta:.6g}; ledger "
            f"{path}); ask for a smaller epsilon or raise cap_epsilon.")
    if beta > Fraction(cap.delta) / 100:
        raise BudgetRefused(f"the samplers of dataset {asked.dataset}'s runs are together {float(beta):.2g} from their exact "
                            f"laws, more than a hundredth of cap_delta = {cap.delta:.6g}; raise cap_delta.")


def _create(path: Path) -> None:
    """An empty file that only its owner can read, before SQLite opens it (its journal inherits the mode)."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _migrate(path: Path, database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise BudgetRefused(f"the ledger {path} was written by a newer version of Cosynth; update this one.")
    if version == 0:
        for statement in _SCHEMA.split(";")[:-1]:
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_VERSION}")


def _take(path: Path) -> int | None:
    """Lock a run's file for as long as this process lives: its descriptor, or None while another process holds it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _abandoned(path: Path) -> bool:
    """Whether the run's process is known to be dead; then its lock file is removed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
