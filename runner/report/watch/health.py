"""How a run goes, for whoever operates the machine: a file that is renewed while it lasts, and systemd, if
that has started it.

    FILE.prom     metrics in Prometheus' text format, for a collector of text files
    any other     one JSON object

Both hold what the run's events tell, which is public. A file that can no longer be written does not end the
run, nor hold it up. It is replaced as a whole at each renewal, so that only a file of this kind, or an empty
one, is taken, and none among the run's results. systemd is told by its datagrams (sd_notify(3),
NOTIFY_SOCKET): that the run has begun, how far it is, that it ends. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mpc_protocols.errors import UsageError
from mpc_protocols.process.threads import start_thread
from runner.failures import describe, reason
from runner.report.watch.follow import Follower

PERIOD_S = 2.0
PATIENCE_S, HEARD_S = 5.0, 1.0
"""How long the end of a run waits for a file's place to answer, and a datagram for room."""
METRICS = ".prom"
HEADS = b'{"state": "', b"cosynth_run_state{"
"""How these files begin."""


class Health:
    """As a context: of the run in `directory`, while it lasts; then whether it succeeded, or by which code it
    failed."""

    def __init__(self, directory: Path, file: Path | None) -> None:
        """Raises `UsageError` for a file that cannot be written, or that is another one's."""
        self._follower, self._file, self._began = Follower(directory), file, time.time()
        self._follower.pass_over()
        self._ended = threading.Event()
        if file is not None:
            try:
                _check(file, directory)
                self._write(self._facts("running", None))
            except OSError as error:
                raise UsageError(
                    f"--health {file} cannot be written ({reason(error)}); name a file in a directory of yours."
                ) from None

    def __enter__(self) -> Health:
        notify("READY=1\nSTATUS=the run has begun")
        self._thread = start_thread(self._go_on, name="health")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(PATIENCE_S)
        code = 0 if error is None else describe(error)[0]
        notify("STOPPING=1\nSTATUS=" + ("done" if not code else f"failed, code {code}"))
        if not self._thread.is_alive():  # else the file's place does not answer
            with suppress(Exception):
                self._tell("failed" if code else "finished", code)

    def _go_on(self) -> None:
        while not self._ended.wait(PERIOD_S):
            with suppress(Exception):  # whatever it is: the run is not this thread's
                self._tell("running", None)

    def _tell(self, state: str, code: int | None) -> None:
        facts = self._facts(state, code)
        if state == "running":
            notify(
                f"STATUS={facts['phase']}, step {facts['step']}, {facts['budget_spent']:.0%} of the budget spent"
            )
        if self._file is not None:
            self._write(facts)

    def _facts(self, state: str, code: int | None) -> dict[str, Any]:
        self._follower.look()
        story = self._follower.story
        return {
            "state": state,
            "code": code,
            "phase": story.phase,
            "step": story.round,
            "budget_spent": story.rho / story.rho_cap if story.rho_cap else 0.0,
            "parties_done": sum(member.done for member in story.members.values()),
            "began": round(self._began, 3),
            "renewed": round(time.time(), 3),
        }

    def _write(self, facts: Mapping[str, Any]) -> None:
        assert self._file is not None
        text = metrics(facts) if self._file.suffix == METRICS else json.dumps(facts) + "\n"
        handle, name = tempfile.mkstemp(prefix=f".{self._file.name}-", dir=self._file.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), 0o644)
            os.replace(name, self._file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def metrics(facts: Mapping[str, Any]) -> str:
    """The same in Prometheus' text format."""
    lines = []
    for state in ("running", "finished", "failed"):
        lines.append(f'cosynth_run_state{{state="{state}"}} {int(facts["state"] == state)}')
    for name, value in (
        ("exit_code", facts["code"]),
        ("step", facts["step"]),
        ("budget_spent_ratio", facts["budget_spent"]),
        ("parties_done", facts["parties_done"]),
        ("began_timestamp_seconds", facts["began"]),
        ("renewed_timestamp_seconds", facts["renewed"]),
    ):
        if value is not None:
            lines.append(f"cosynth_run_{name} {value}")
    return "\n".join(lines) + "\n"


def _check(file: Path, directory: Path) -> None:
    """Raise `UsageError` for a file that is not of this kind, or that lies where a run puts its results;
    OSError if it cannot be read."""
    if file.parent.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"--health {file} lies among the run's results; name a file outside {directory}.")
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with open(handle, "rb") as there:
        head = there.read(max(map(len, HEADS))) if stat.S_ISREG(os.fstat(handle).st_mode) else b"no file"
    if head and not head.startswith(HEADS):
        raise UsageError(
            f"--health {file} is something else than a file of an earlier run's health, and would be replaced; name another one."
        )


def notify(text: str) -> None:
    """Tell systemd, if it has started this process; whatever comes of it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
        end.settimeout(HEARD_S)  # where nobody reads, the queue is full
        end.sendto(text.encode(), "\0" + address[1:] if address.startswith("@") else address)
