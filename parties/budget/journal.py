"""A computing party's journal of one run: what may have been opened, on disk before it is
(`docs/design/accounts.md` 8).

One JSON object per line, appended and fsynced before the call returns, but for `opened`, which becomes
durable with the line after it. The rule it serves (`docs/design/mechanisms.md` 4): the record of an event is
on disk at all computing parties before the first opening message of its release leaves, so that after a crash
"maybe opened" counts as opened.

A crash can tear the last line only: a last line without its newline never returned from `fsync`, so nothing
was opened on its strength, and `read` drops it (who appends after that first truncates the file to `sound`
bytes). Any other line that is not as `FORMAT` says is an error. No private value is ever in it: events and
inputs hashes are functions of the public transcript.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.process.resources import lacking

FORMAT = 3
"""A run has one journal, whatever the number of attempts (`docs/design/resume.md`). Its lines:

    {"record": "header", "format": 3, "study": hex, "session": hex, "party": str, "version": str}      first, once
    {"record": "attempt", "attempt": n, "t": float}      n = 1, 2, ...: each has a session, and keys, of its own
    {"record": "alignment", "what": str, "rho": "p/q", "beta": "p/q", "detail": {...}, "inputs": hex, "t": float}
    {"record": "event", "release": n, "what": str, "rho": "p/q", "beta": "p/q", "detail": {...}, "inputs": hex, "t": float}
    {"record": "held", "mark": hex, "t": float}          shares of the last release are in the state file: which record they are
    {"record": "opened", "release": n, "t": float}       the result of release n is known here
    {"record": "end", "code": int, "t": float}           the exit code; after 0 nothing follows, else at most another attempt

study: SHA-256 of the study. inputs: hash of all public inputs of the step. t: seconds since 1970. Releases
are numbered from 1 in the order of their events, alike at all parties. What an alignment does
(`docs/design/psu.md` 3: alignment.started, .size, .aborted) has no number.
"""


@dataclass(frozen=True)
class Header:
    """Whose journal of which run. study, session: bytes; party: its name; version: of the software."""

    study: bytes
    session: bytes
    party: str
    version: str


@dataclass(frozen=True)
class Release:
    """An event on record. inputs: the hash of the step's public inputs; opened: its result was known here."""

    event: Event
    inputs: bytes
    opened: bool


@dataclass(frozen=True)
class Record:
    """A journal as `read` found it. releases[i] is release i + 1; alignment: its events, of all attempts;
    code: None while no end is on record for the last attempt; marks: of the shares held."""

    header: Header
    attempts: int
    alignment: tuple[Event, ...]
    releases: tuple[Release, ...]
    code: int | None
    sound: int
    marks: tuple[str, ...] = ()


class Journal:
    """The journal of a run under way. One thread at a time."""

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        """Create the file, 0600. Raises `UsageError` if it exists already, `BudgetRefused` if it cannot be
        written."""
        self.path = Path(path)
        self._releases = 0
        self._opened: set[int] = set()
        try:
            self._descriptor = os.open(
                self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            raise UsageError(
                f"{self.path} exists already: it is the journal of another run; choose another --out."
            ) from None
        except OSError as error:
            raise self._unwritten(error) from None
        self._append(
            {
                "record": "header",
                "format": FORMAT,
                "study": header.study.hex(),
                "session": header.session.hex(),
                "party": header.party,
                "version": header.version,
            }
        )
        self._append({"record": "attempt", "attempt": 1, "t": time.time()})
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the file's name, too, must survive
        finally:
            os.close(folder)

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], record: Record) -> Journal:
        """Go on with the journal of an interrupted run, as `read` found it: another attempt begins.

        Raises `OutOfResources` or `BudgetRefused` if it cannot be written.
        """
        journal = cls.__new__(cls)
        journal.path, journal._releases = Path(path), len(record.releases)
        journal._opened = {i for i, release in enumerate(record.releases, start=1) if release.opened}
        try:
            journal._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.ftruncate(journal._descriptor, record.sound)  # nothing may follow a torn line
        except OSError as error:
            raise journal._unwritten(error) from None
        journal._append({"record": "attempt", "attempt": record.attempts + 1, "t": time.time()})
        return journal

    def events(self, releases: Sequence[tuple[Event, bytes]]) -> None:
        """Put the events of a step's releases on disk, each with its inputs, before anything of them is opened;
        they are numbered on from the last one.

        Raises `OutOfResources` or `BudgetRefused` if they cannot be written: then nothing of them may be opened,
        also of those whose lines are there.
        """
        self._append(
            *(
                {"record": "event", "release": number, **_fields(event, inputs)}
                for number, (event, inputs) in enumerate(releases, start=self._releases + 1)
            )
        )
        self._releases += len(releases)

    def alignment(self, event: Event, inputs: bytes) -> None:
        """Put on disk what an alignment is about to do or has met. Raises `BudgetRefused` as `events` does."""
        self._append({"record": "alignment", **_fields(event, inputs)})

    def held(self, mark: str) -> None:
        """Note that shares of the last release are in the state file. Durable with the next record: what is
        missing in the state file without a crash of the machine was taken away."""
        self._append({"record": "held", "mark": mark, "t": time.time()}, durable=False)

    def opened(self, release: int) -> None:
        """Record that the release's result is known here. release: a number that `event` returned.

        Durable with the next record: a crash before that leaves "maybe opened", which counts as opened.
        """
        if not 1 <= release <= self._releases:
            raise ValueError(f"Release {release} is not on record.")
        if release not in self._opened:
            self._append({"record": "opened", "release": release, "t": time.time()}, durable=False)
            self._opened.add(release)

    def end(self, code: int) -> None:
        """Record how the run ended (its exit code) and close the journal."""
        self._append({"record": "end", "code": code, "t": time.time()})
        self.close()

    def close(self) -> None:
        """Close the file; what a crash does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, *records: dict[str, object], durable: bool = True) -> None:
        if not records:
            return
        lines = b"".join(json.dumps(record, allow_nan=False).encode() + b"\n" for record in records)
        try:
            written = os.write(self._descriptor, lines)
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            self.close()
            raise self._unwritten(error) from None
        if written != len(lines):
            self.close()  # nothing may follow a torn line
            raise self._unwritten(OSError(errno.ENOSPC, "the disk is full"))

    def _unwritten(self, error: OSError) -> CosynthError:
        return lacking(error, f"The journal {self.path}", ", so nothing may be released") or BudgetRefused(
            f"The journal {self.path} cannot be written ({error.strerror}), so nothing may be released; choose another --out."
        )


def _fields(event: Event, inputs: bytes) -> dict[str, object]:
    return {
        "what": event.what,
        "rho": str(event.rho),
        "beta": str(event.beta),
        "detail": dict(event.detail),
        "inputs": inputs.hex(),
        "t": time.time(),
    }


def read(path: str | os.PathLike[str]) -> Record:
    """A journal from disk. Raises `DataRefused` for a file that is not one, or was altered; names the line."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataRefused(f"The journal {path} cannot be read ({error.strerror}).") from None
    sound = content.rfind(b"\n") + 1
    header: Header | None = None
    attempts, code = 0, None
    events: list[tuple[Event, bytes]] = []
    alignment: list[Event] = []
    opened: set[int] = set()
    marks: list[str] = []
    for number, line in enumerate(content[:sound].splitlines(), start=1):
        try:
            record = _parse(line)
            kind = record.pop("record")
            if header is None:
                header = _header(kind, record)
            elif (
                kind == "attempt"
                and record["attempt"] == attempts + 1
                and (attempts == 0) == (number == 2)
                and code != 0
            ):
                attempts, code = attempts + 1, None
            elif attempts == 0 or code is not None:
                raise ValueError
            elif kind == "event" and record["release"] == len(events) + 1:
                events.append(_event(record))
            elif kind == "alignment":
                alignment.append(_event(record)[0])
            elif kind == "held" and isinstance(record["mark"], str):
                marks.append(record["mark"])
            elif kind == "opened" and record["release"] in range(1, len(events) + 1):
                opened.add(record["release"])
            elif kind == "end" and type(record["code"]) is int:
                code = record["code"]
            else:
                raise ValueError
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            raise DataRefused(
                f"The journal {path}, line {number}, is not a record of format {FORMAT}: it was altered or is not "
                "a journal of this version; start a new run."
            ) from None
    if header is None or attempts == 0:
        raise DataRefused(f"The journal {path} ends before its run began; start a new run.")
    releases = tuple(Release(event, inputs, i in opened) for i, (event, inputs) in enumerate(events, start=1))
    return Record(header, attempts, tuple(alignment), releases, code, sound, tuple(marks))


_KEYS = {
    "header": {"format", "study", "session", "party", "version"},
    "attempt": {"attempt", "t"},
    "alignment": {"what", "rho", "beta", "detail", "inputs", "t"},
    "event": {"release", "what", "rho", "beta", "detail", "inputs", "t"},
    "held": {"mark", "t"},
    "opened": {"release", "t"},
    "end": {"code", "t"},
}


def _parse(line: bytes) -> dict[str, Any]:
    """A line's object with exactly the keys of its kind. ValueError, KeyError or TypeError otherwise."""
    record = json.loads(line)
    if not isinstance(record, dict) or record.keys() != _KEYS[record["record"]] | {"record"}:
        raise ValueError
    if "t" in record and not isinstance(record["t"], int | float):
        raise ValueError
    return record


def _header(kind: str, record: dict[str, Any]) -> Header:
    if (
        kind != "header"
        or record["format"] != FORMAT
        or not isinstance(record["party"] + record["version"], str)
    ):
        raise ValueError
    return Header(
        bytes.fromhex(record["study"]), bytes.fromhex(record["session"]), record["party"], record["version"]
    )


def _event(record: dict[str, Any]) -> tuple[Event, bytes]:
    event = Event(record["what"], Fraction(record["rho"]), Fraction(record["beta"]), record["detail"])
    if (
        not isinstance(event.what, str)
        or not isinstance(event.detail, dict)
        or event.rho < 0
        or event.beta < 0
    ):
        raise ValueError
    return event, bytes.fromhex(record["inputs"])
