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
              party (all parties compare transcripts between begin and opening), so the events begun cover what was opened.
              While the run is open they stand in a file of its own beside the ledger (`tally.py`), which takes them over
    dead      a run whose process ended without settling: while it lives its reservation stands; once it is known to be dead,
              a computing party's run is settled to the events it had begun. A contributor does not see releases happen and
              cannot know how far the others got: its reservation stands for good unless the run ended normally, when the
              computing parties have told it the events (`begin` each, then `settle`)

A run is known to be dead when the lock that its process holds on its tally is free. No tally, or one that was altered: not
known, so the reservation stands. A run that is resumed reserves again under its id, which keeps the events it had begun.

Threat model: guards the custodian against its own mistakes and against counterparties that ask too often; who can write the
file can lie to it. Nothing private is in it: events are public facts of the release. File 0600, folder of tallies 0700.
"""

from __future__ import annotations

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
from parties import tally
from parties.tally import Begun, Tally
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
    id TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), what TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL,
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
            held = Tally.take(self._tally_path(number))
            if held is None:
                raise BudgetRefused(f"the run {reservation.run} is already under way on dataset {reservation.dataset}; "
                                    "wait for it to end.")
            earlier = database.execute("SELECT rho FROM events WHERE run = ?", (number,)).fetchall()
            left = reservation.rho - sum((Fraction(rho) for (rho,) in earlier), Fraction(0))
        return OpenRun(self, number, held, left)

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
        """The entries, after taking over all tallies and settling the computing parties' runs that are known to be dead."""
        for number, computes in database.execute("SELECT number, computes FROM runs WHERE state = 'open'").fetchall():
            path = self._tally_path(number)
            dead = tally.abandoned(path)  # before reading: a process that lives may still append
            try:
                self._take_over(database, number, tally.read(path))
            except ValueError:  # altered: nobody knows what it had begun, so the reservation stands
                continue
            if dead and computes:
                database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (number,))
                path.unlink()
        events: dict[int, list[Begun]] = {}
        for run, name, what, rho, beta, detail, when in database.execute(
                "SELECT run, id, what, rho, beta, detail, time FROM events ORDER BY rowid"):
            event = Event(what, Fraction(rho), Fraction(beta), json.loads(detail))
            events.setdefault(run, []).append(Begun(event, name, when))
        found = database.execute(f"SELECT number, {_FIELDS} FROM runs WHERE ? IS NULL OR dataset = ? ORDER BY number",
                                 (dataset, dataset))
        return [_entry(fields, tuple(events.get(number, ()))) for number, *fields in found]

    def _take_over(self, database: sqlite3.Connection, number: int, begun: Sequence[Begun]) -> None:
        """Copy a tally's events, those that are not here yet."""
        database.executemany(
            "INSERT OR IGNORE INTO events (id, run, what, rho, beta, detail, time) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(each.id, number, each.event.what, str(each.event.rho), str(each.event.beta), json.dumps(each.event.detail),
              each.time) for each in begun])

    def _settle(self, number: int, begun: Sequence[Begun]) -> None:
        with self._transaction() as database:
            self._take_over(database, number, begun)
            database.execute("UPDATE runs SET state = 'settled' WHERE number = ?", (number,))
        with suppress(OSError):  # a tally that stays is taken over again without effect
            self._tally_path(number).unlink()

    def _tally_path(self, number: int) -> Path:
        return self.path.with_name(self.path.name + ".open") / str(number)

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
    """A run under way: holds its reservation, and the lock that shows it alive. One thread at a time."""

    def __init__(self, ledger: Ledger, number: int, tally: Tally, left: Fraction) -> None:
        self._ledger, self._number, self._tally, self._left = ledger, number, tally, left

    def begin(self, event: Event) -> None:
        """Record an event, before the first opening message of its release leaves. Durable on return.

        event.detail: JSON-able. Raises `BudgetRefused` if the events would exceed the reservation, or cannot be recorded.
        """
        if event.rho > self._left:
            raise BudgetRefused(f"the release {event.what} would exceed what this run reserved in the ledger "
                                f"{self._ledger.path}; nothing of it is opened.")
        self._tally.append(event)
        self._left -= event.rho

    def settle(self) -> None:
        """The run is over: from now on it is charged the events begun. A contributor calls it only after a normal end."""
        try:
            begun = self._tally.events()
        except (OSError, ValueError):
            raise BudgetRefused(f"the run's record beside the ledger {self._ledger.path} was altered, so its reservation stands "
                                "in full.") from None
        self._ledger._settle(self._number, begun)
        self.close()

    def close(self) -> None:
        """Let go without settling: what the death of the process does."""
        self._tally.close()


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
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise BudgetRefused(f"{path} is a database of another program; name another file for the ledger.")
        for statement in _SCHEMA.split(";")[:-1]:
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_VERSION}")
