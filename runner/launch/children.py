"""The launcher's party processes: started together, watched, and ended together; none is left behind
(`docs/design/session.md` 7).

Each process has its own process group, so that Ctrl-C reaches the launcher alone, which passes it on; a pipe
on which the launcher writes one byte a second (`runner.launch.watchdog`), the first when everything is ready
for it; and a report file. As soon as one process fails, the others get a few seconds to end by themselves:
they lose a peer, and say so. A process that is stopped (SIGSTOP) for silence_s is killed. Standard library
only.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpc_protocols import errors
from mpc_protocols.process.installation import STARTED_AS, program
from runner.failures import append_private
from runner.launch.first_failure import Report, interrupted, killed, read_report, stopped, unexplained
from runner.launch.fork_server import PROGRAM, begin, forked

HEARTBEAT = 1.0
TICK = 0.2
TICK_ENDING = 0.005
"""The same while a process is about to end: it has closed its output, and its end itself wakes nobody."""
GRACE_TERM = 2.0
"""Seconds after the first failure (or the user's interruption) until the processes that are left get SIGTERM."""
GRACE_KILL = 3.5
"""The same for SIGKILL: everything ends within silence_s + 5 s."""
MAX_LINE = 1 << 20
PACKAGES = Path(__file__).resolve().parents[2]
"""The directory that holds the packages; party processes import them from here, whatever the current
directory holds."""


def environment(processes: int = 1) -> dict[str, str]:
    """The environment of processes that run `PROGRAM`, so many at once on this machine.

    Each gets its share of the processors for linear algebra, unless the user has said how many threads:
    OpenBLAS would start one per processor in every process, and an idle one spins on the processor that
    another party needs.
    """
    share = (
        {}
        if "OMP_NUM_THREADS" in os.environ
        else {"OPENBLAS_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes))}
    )
    return (
        share
        | os.environ
        | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH")))),
            STARTED_AS: program(),
        }
    )


@dataclass(frozen=True)
class Command:
    """One party process: its arguments after the program, where it reports, where its standard error goes,
    its private log."""

    party: str
    arguments: tuple[str, ...]
    report: Path
    stderr: Path
    log: Path


@dataclass(frozen=True)
class Usage:
    """Resources that a process used: CPU seconds (user and system) and the largest resident memory in MiB."""

    cpu_s: float
    peak_rss_mb: float


class Child:
    """A running party process."""

    def __init__(self, command: Command, program: Sequence[str], processes: int) -> None:
        self.command = command
        input_end, self.pulse = os.pipe()
        self.output, output_end = os.pipe()
        try:
            with command.stderr.open("wb") as stderr:
                self.process = _start(
                    program,
                    command.arguments,
                    environment(processes),
                    (input_end, output_end, stderr.fileno()),
                )
        except OSError:
            self.close()
            raise
        finally:
            os.close(input_end)
            os.close(output_end)
        os.set_blocking(self.pulse, False)
        os.set_blocking(self.output, False)
        self.pending = b""
        self.running, self.silent = True, False
        self.stopped: tuple[int, float] | None = None
        self.ended_by_us = False
        self.report = Report(command.party, 0, "", 0.0)
        self.usage = Usage(0.0, 0.0)

    @property
    def party(self) -> str:
        """The party's name."""
        return self.command.party

    def lines(self) -> list[bytes]:
        """Complete lines that the process has written since the last call."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.output, 1 << 16):
                self.pending += chunk
            self.silent = True
        *complete, self.pending = self.pending.split(b"\n")
        if len(self.pending) > MAX_LINE:
            self.pending = b""
        return complete

    def beat(self) -> None:
        """Tell the process that the launcher lives; a full pipe holds enough of that already."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self.pulse, b".")

    def signal(self, number: int) -> None:
        """Send a signal; a process that has ended already is left alone."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, number)

    def interrupt(self, again: bool) -> None:
        """Pass on the user's Ctrl-C; the second one does not wait."""
        self.ended_by_us = True
        self.signal(signal.SIGKILL if again else signal.SIGINT)

    def kill(self, silence_s: float) -> None:
        """End the process now. If it was stopped, that is what the run has died of."""
        if self.running and not self.ended_by_us:
            self.ended_by_us = True
            if self.stopped:
                number, since = self.stopped
                self.report = stopped(self.party, number, min(time.monotonic() - since, silence_s), since)
        self.signal(signal.SIGKILL)

    def poll(self) -> None:
        """Notice that the process stopped, went on, or ended."""
        while self.running:
            pid, status, usage = os.wait4(self.process, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self.stopped = (os.WSTOPSIG(status), time.monotonic())
            elif os.WIFCONTINUED(status):
                self.stopped = None
            else:
                self._ended(os.waitstatus_to_exitcode(status), usage)

    def _ended(self, code: int, usage: resource.struct_rusage) -> None:
        self.running = False
        scale = 2**20 if sys.platform == "darwin" else 2**10
        self.usage = Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale)
        if self.report.code:
            return
        reported = read_report(self.command.report)
        if self.ended_by_us:
            # what a process says about being ended is no cause; what it had said before may be one
            if reported and reported.code != errors.Interrupted.exit_code:
                self.report = reported
        elif reported:
            self.report = reported
        elif code == -signal.SIGINT:  # before the process could say so itself
            self.report = interrupted(self.party)
        elif code < 0:
            self.report = killed(self.party, -code, self._last_words())
        elif code:
            place = self._last_words() or "nowhere to be found"
            self.report = unexplained(self.party, code, place)

    def _last_words(self) -> Path | None:
        """What the process wrote to its standard error goes to its private log; that log's path, None if it
        wrote nothing."""
        words = self.command.stderr.read_bytes()
        if not words:
            return None
        append_private(self.command.log, words)
        return self.command.log

    def close(self) -> None:
        """Free the pipes."""
        os.close(self.pulse)
        os.close(self.output)


def _start(
    program: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int]
) -> int:
    """Start a process in a process group of its own: forked from one that has imported everything where that
    can be had.

    streams: its standard input, output and error. Returns its number: a child's. Raises `OSError`.
    """
    if program == PROGRAM and (process := forked(environment, arguments, streams)) is not None:
        return process
    return os.posix_spawn(
        program[0],
        [*program, *arguments],
        environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, stream, target) for target, stream in enumerate(streams)],
        setpgroup=0,
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


def supervise(
    commands: Sequence[Command],
    silence_s: float,
    on_line: Callable[[str, bytes], None],
    program: Sequence[str] = PROGRAM,
    interruptions: int | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> tuple[list[Child], bool]:
    """Run all commands to their end; afterwards none of the processes is left.

    on_line(party, line) gets what they write to standard output. interruptions: a non-blocking file
    descriptor on which each byte is a Ctrl-C. prepare: makes what the processes will read, while their fork
    server loads. Returns the children, and whether the user ended the run: before anything else did.
    """
    children: list[Child] = []
    presses = 0
    by_user = False
    first_end: float | None = None
    beaten = -math.inf
    with selectors.DefaultSelector() as selector:
        if interruptions is not None:
            selector.register(interruptions, selectors.EVENT_READ)
        try:
            if program == PROGRAM:
                begin(environment(len(commands)))
            prepare()
            for command in commands:
                children.append(Child(command, program, len(commands)))
                selector.register(children[-1].output, selectors.EVENT_READ)
            while any(child.running for child in children):
                now = time.monotonic()
                if (
                    now - beaten >= HEARTBEAT
                ):  # before waiting for anything: the first byte is what the processes wait for
                    beaten = now
                    for child in children:
                        child.beat()
                for key, _ in selector.select(
                    TICK_ENDING if any(child.running and child.silent for child in children) else TICK
                ):
                    if key.fd == interruptions:
                        presses += len(os.read(interruptions, 64))
                        by_user |= first_end is None
                        for child in children:
                            child.interrupt(again=presses > 1)
                now = time.monotonic()
                for child in children:
                    child.poll()
                    for line in child.lines():
                        on_line(child.party, line)
                    if child.silent and child.output in selector.get_map():
                        selector.unregister(child.output)
                    if child.stopped and now - child.stopped[1] >= silence_s:
                        child.kill(silence_s)
                if first_end is None and (presses or any(child.report.code for child in children)):
                    first_end = now
                if first_end is not None:
                    _hurry(children, now - first_end, silence_s)
        finally:
            for child in children:
                child.kill(silence_s)
            for child in children:
                while child.running:
                    child.poll()
                    time.sleep(0.01)
                child.close()
    return children, by_user


def _hurry(children: Sequence[Child], waited: float, silence_s: float) -> None:
    for child in children:
        if waited >= GRACE_KILL:
            child.kill(silence_s)
        elif waited >= GRACE_TERM and child.running and not child.ended_by_us and not child.stopped:
            child.ended_by_us = True
            child.signal(signal.SIGTERM)
