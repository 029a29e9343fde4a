"""`python -m runner.review.audit.subjects.processes.faulty_program FAULT MOMENT -m MODULE ARGUMENT...`: a
program that a fault befalls.

A moment is before or after a call of a function of the product (`faults.MOMENTS`); the fault strikes the
process from within, at exactly that instruction, once. What it does is what the system does to any process: a
signal, links that are cut, limits on files and memory, a clock that is set, a lock that another program
holds, a line of which a crash left half.
"""

from __future__ import annotations

import os
import resource
import runpy
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from mpc_protocols.errors import BudgetRefused
from parties.budget import ledger_file
from runner.results.outdir import JOURNALS
from runner.review.audit.broken_builds.faults.mutation import replaced
from runner.review.audit.subjects.processes import expiry
from runner.review.audit.subjects.processes.faults import MOMENTS, STRUCK, Moment

DAY_S = 86_400.0
MAX_FILE = 8 << 10
"""Bytes that a file may grow to where the disk is full: what a party says fits, its journal and its results
do not."""
WAIT_S = 2.0
MARGIN = 1 << 20
"""Bytes of memory that are left."""
_kept: list[Any] = []
"""What has to outlive the moment, such as the connection that holds a lock."""


def _connections() -> list[socket.socket]:
    """This process's connections to others."""
    found = []
    for name in os.listdir("/proc/self/fd" if Path("/proc/self/fd").exists() else "/dev/fd"):
        with suppress(OSError, ValueError):
            each = socket.socket(fileno=os.dup(int(name)))
            with suppress(OSError):
                if each.family in (socket.AF_INET, socket.AF_INET6):
                    each.getpeername()
                    found.append(each)
                    continue
            each.close()
    return found


def _cut(how: int, most: int) -> None:
    for each in _connections()[:most]:
        with suppress(OSError):
            each.shutdown(how)


def _locked() -> None:
    """Another program has the ledger for itself and does not give it back; this one asks for WAIT_S each
    time, and not longer."""
    mock.patch.object(ledger_file, "_PATIENCE_S", WAIT_S).start()
    path = Path(os.environ["COSYNTH_LEDGER"])
    with suppress(BudgetRefused), ledger_file.transaction(path):
        pass  # there is a ledger to be locked
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with suppress(sqlite3.OperationalError):
        database.execute("BEGIN EXCLUSIVE")
    _kept.append(database)


def _no_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MARGIN
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _full() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _later() -> None:
    clock = time.time
    time.time = lambda: clock() + DAY_S


def _torn() -> None:
    """Half a line at the end of the journal, and no process."""
    for path in Path("out").glob(JOURNALS):
        with path.open("ab") as journal:
            journal.write(b'{"record": "event", "rel')
    os.kill(os.getpid(), signal.SIGKILL)


STRIKES: Mapping[str, Callable[[], None]] = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "asked": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "mute": lambda: _cut(socket.SHUT_WR, 1),
    "cut": lambda: _cut(socket.SHUT_RDWR, 1 << 30),
    "full": _full,
    "locked": _locked,
    "later": _later,
    "memory": _no_memory,
    "torn": _torn,
    expiry.EXPIRED: expiry.leap,
}
"""What happens, by the fault's key."""


def _strike(strike: Callable[[], None]) -> None:
    """Leave a sign that it has come to this, and strike."""
    Path(STRUCK).touch()
    strike()


def _befalling(moment: Moment, strike: Callable[[], None]) -> Any:
    """A patch that strikes once."""
    calls, lock = iter(range(1 << 62)), threading.Lock()

    def due() -> bool:
        with lock:
            return next(calls) == moment.number - 1

    def made(plain: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*given: Any, **named: Any) -> Any:
            now = due()
            if now and not moment.after:
                _strike(strike)
            found = plain(*given, **named)
            if now and moment.after:
                _strike(strike)
            return found

        return struck

    owner, _, name = moment.function.rpartition(".")
    module, _, kind = owner.partition(":")
    if not kind:
        return replaced(f"{module}.{name}", made)
    holder = getattr(__import__(module, fromlist=[kind]), kind)
    return mock.patch.object(holder, name, made(getattr(holder, name)))


def main() -> None:
    """Run the module named, as the interpreter would."""
    fault, moment, _, module = sys.argv[1:5]
    del sys.argv[1:5]
    with _befalling(next(each for each in MOMENTS if each.key == moment), STRIKES[fault]):
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
