"""The ledger's record of one run while it is under way: a file that is locked as long as its process lives.

Two jobs that a database transaction does badly. The lock (`flock`) says whether the process is alive: the
kernel gives it up however the process ends, and keeps it while the process is merely stopped. And an event
must be on disk before its release is opened, at every step of a run: one appended line and one fsync cost a
fifth of a SQLite commit, and no run waits for another.

The ledger takes the lines over (`ledger.py`), each once, by its id. A line without its newline never returned
from fsync: nothing was opened on its strength, and it is dropped.

A copy of the file, in a backup or beside a copied ledger, is locked by nobody while its run lives and
releases more. So the file says which one it is, by its inode: of a copy it is not known whether the run is
dead.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from mpc_protocols.process.resources import lacking
from parties.new_file import sync

_INODE = "inode"


@dataclass(frozen=True)
class RecordedEvent:
    """An event on record. id: unique; time: seconds since 1970."""

    event: Event
    id: str
    time: float


class RunFile:
    """A run's file, locked by this process. `take` it; one thread at a time."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        self._failed: OSError | None = None

    @classmethod
    def take(cls, path: Path) -> RunFile | None:
        """Create or reopen the file and lock it; None while another process holds it. Raises OSError."""
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(path).st_ino != os.fstat(descriptor).st_ino:  # its last holder removed it meanwhile
                raise BlockingIOError
            content = _content(descriptor)
            os.ftruncate(descriptor, content.rfind(b"\n") + 1)  # nothing may follow a torn line
            if _inode(descriptor) != os.fstat(descriptor).st_ino:
                _write(descriptor, json.dumps({_INODE: os.fstat(descriptor).st_ino}).encode() + b"\n")
            os.fsync(descriptor)
            sync(path.parent)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError | FileNotFoundError):
                return None
            raise
        return cls(path, descriptor)

    def append(self, *events: Event) -> None:
        """Put events on disk, with one wait for it. Their details are JSON-able. Raises `OutOfResources` or
        `BudgetRefused` if they cannot be written; then no other can."""
        if not events:
            return
        if self._failed is None:
            try:
                _write(self._descriptor, b"".join(map(_line, events)))
                os.fsync(self._descriptor)
            except OSError as error:
                self._failed = error
        if self._failed is not None:
            then = f", so nothing of the release {events[0].what} is opened"
            raise lacking(self._failed, self._path, then) or BudgetRefused(
                f"{self._path} cannot be written ({self._failed.strerror}){then}; look after the disk."
            )

    def events(self) -> list[RecordedEvent]:
        """All events on record, oldest first; also when somebody removed the file. Raises OSError or
        ValueError."""
        return _parse(_content(self._descriptor))

    def close(self) -> None:
        """Give up the lock: what the death of the process does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _line(event: Event) -> bytes:
    """An event as a line of the file."""
    fields = {
        "id": secrets.token_hex(16),
        "what": event.what,
        "rho": str(event.rho),
        "beta": str(event.beta),
        "detail": dict(event.detail),
        "t": time.time(),
    }
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def as_recorded(event: Event) -> Event:
    """The event as it is read from a file."""
    return Event(event.what, event.rho, event.beta, json.loads(json.dumps(dict(event.detail))))


def read(path: Path) -> list[RecordedEvent]:
    """The events of a run that may be under way; none if it has no file. Raises OSError, or ValueError if it
    was altered."""
    try:
        return _parse(path.read_bytes())
    except FileNotFoundError:
        return []


def abandoned(path: Path) -> bool:
    """Whether the run's process is known to be dead: there is its own file, no copy, and nobody holds its
    lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _inode(descriptor) in (None, os.fstat(descriptor).st_ino)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a dead run's file, unless a process has taken it meanwhile. Raises OSError."""
    if held := RunFile.take(path):
        try:
            path.unlink()
        finally:
            held.close()


def _write(descriptor: int, line: bytes) -> None:
    """All of it. Raises OSError."""
    if os.write(descriptor, line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _inode(descriptor: int) -> int | None:
    """Of the file that a process last took, as this one says; None before anything was begun, and in an older
    version's."""
    last = None
    for line in _content(descriptor).splitlines(keepends=True):
        with suppress(ValueError, TypeError, KeyError):  # an event, or torn
            last = json.loads(line)[_INODE] if line.endswith(b"\n") else last
    return last


def _parse(content: bytes) -> list[RecordedEvent]:
    found = []
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            record = json.loads(line)
            if _INODE in record:
                continue
            event = Event(record["what"], Fraction(record["rho"]), Fraction(record["beta"]), record["detail"])
            found.append(RecordedEvent(event, record["id"], record["t"]))
        except (KeyError, TypeError, ZeroDivisionError):
            raise ValueError("not a line of an open run") from None
    return found
