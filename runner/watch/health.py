"""How a run goes, for whoever operates the machine: a file that is renewed while it lasts, and systemd, if that has started it.

    FILE.prom     metrics in Prometheus' text format, for a collector of text files
    any other     one JSON object

Both hold what the run's events tell, which is public. A file that can no longer be written does not end the run. systemd is told
by its datagrams (sd_notify(3), NOTIFY_SOCKET): that the run has begun, how far it is, that it ends. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mpc_protocols.errors import CosynthError, UsageError
from mpc_protocols.threads import start_thread
from runner.failures import reason
from runner.watch.follow import Follower

PERIOD_S = 2.0
METRICS = ".prom"


class Health:
    """As a context: of the run in `directory`, while it lasts; then whether it succeeded, or by which code it failed."""

    def __init__(self, directory: Path, file: Path | None) -> None:
        """Raises `UsageError` for a file that cannot be written."""
        self._follower, self._file, self._began = Follower(directory), file, time.time()
        self._ended = threading.Event()
        if file is not None:
            try:
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        code = 0 if error is None else error.exit_code if isinstance(error, CosynthError) else 1
        notify("STOPPING=1\nSTATUS=" + ("done" if not code else f"failed, code {code}"))
        with suppress(OSError):
            self._tell("failed" if code else "finished", code)

    def _go_on(self) -> None:
        while not self._ended.wait(PERIOD_S):
            with suppress(OSError):
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
            os.chmod(name, 0o644)
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


def notify(text: str) -> None:
    """Tell systemd, if it has started this process; whatever comes of it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
        end.sendto(text.encode(), "\0" + address[1:] if address.startswith("@") else address)
