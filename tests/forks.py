"""Processes that are forked from one which has imported what tests' processes need: a start costs a fork, not a
second of imports. Linux only, as `runner.launch.fork_server`."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from runner.launch.fork_server import ForkServer

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Forked:
    """A child that a fork server has made, with what is used here of a process of `subprocess`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        descriptor = os.pidfd_open(self.pid) if self.poll() is None else None
        if descriptor is not None:
            with open(descriptor, "rb"):
                if any(
                    select.select([descriptor], [], [], timeout)
                ):  # it has ended; a tracer may look at it yet
                    self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("forked", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """A signal, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """The end."""
        self.send_signal(signal.SIGKILL)


@cache
def _server() -> ForkServer:
    """Of all tests of this process."""
    return ForkServer(os.environ | ONE_THREAD, (sys.executable, "-m", "tests.fork_server_process"))


def forked(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, streams: Sequence[int]
) -> Forked:
    """Start `python -m` with these arguments (`tests.fork_server_process.main`) in a process group of its own.
    streams: its standard input, output and error."""
    return Forked(_server().start(environment, str(directory), arguments, streams))


class Child(Forked):
    """One with pipes: what is written to `stdin` it reads, and what it writes is read from `stdout`."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        theirs, asked = os.pipe()
        answered, written = os.pipe()
        with open(os.devnull, "wb") as nothing:
            super().__init__(
                forked([module], environment, Path.cwd(), (theirs, written, nothing.fileno())).pid
            )
        os.close(theirs)
        os.close(written)
        self.stdin, self.stdout = open(asked, "wb"), open(answered, "rb")  # noqa: SIM115 - whoever has it closes them
