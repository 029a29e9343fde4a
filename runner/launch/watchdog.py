"""A party process that the launcher started: it reports to the launcher and never outlives it
(`docs/design/session.md` 7).

The launcher writes one byte a second to the process's standard input, the first when the certificates exist.
When that input ends, the launcher is gone; when it is silent for silence_s, the launcher is stopped or stuck:
either way the process ends by itself. On Linux the kernel kills it together with the launcher, too
(PR_SET_PDEATHSIG). Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_protocols import errors
from mpc_protocols.process.threads import start_thread
from runner.launch.first_failure import Report, write_report

PR_SET_PDEATHSIG = 1
PATIENCE = 2.0
"""Seconds between asking the process to end and ending it."""


@dataclass(frozen=True)
class Job:
    """The launcher's orders to a party process besides its command line: a JSON file, `--job FILE`."""

    launcher: int
    report: str
    silence_s: float
    ca: str | None
    cert: str | None
    key: str | None
    data: str | None
    ledger: dict[str, Any] | None = None
    """What replaces [ledger] of the party's private file, by its keys."""
    shared: str | None = None
    """A folder of the launcher's, for what is alike at all parties."""

    @classmethod
    def read(cls, path: Path) -> Job:
        """The job at `path`. Raises `UsageError` for anything that the launcher did not write."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise errors.UsageError(f"--job {path} is for the launcher's own use; run without it.") from None


def watch(job: Job, party: str) -> threading.Event:
    """Tie this process to its launcher, in a daemon thread. Returns an event that the launcher's first
    heartbeat sets."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != job.launcher:
        os._exit(errors.PeerLost.exit_code)
    ready = threading.Event()
    start_thread(_listen, job, party, ready, name="watchdog")
    return ready


def _listen(job: Job, party: str, heartbeat: threading.Event) -> None:
    while True:
        ready, _, _ = select.select([0], [], [], job.silence_s)
        if not ready:
            reason = f"was silent for {job.silence_s:g} s (was it stopped?)"
            break
        if not os.read(0, 4096):
            reason = "is gone"
            break
        heartbeat.set()
    write_report(
        Path(job.report),
        Report(
            party,
            errors.PeerLost.exit_code,
            f"Party {party} ended because its launcher {reason}; run again.",
            time.monotonic(),
        ),
    )
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(errors.PeerLost.exit_code)
