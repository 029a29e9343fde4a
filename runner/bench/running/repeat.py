"""One job at one party: warm-up, repetitions, and what each of them cost this process.

A repetition begins behind a barrier (two empty exchanges between all parties that are linked, so all logical
clocks are equal) and ends at each party by itself; the monotonic clock is the machine's, so the launcher can
take the time from the first beginning to the last end. CPU is that of the whole process, the session's thread
included. Peak memory is reset before the first repetition, once the input is there, and read after the last.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpc_protocols.toolkit.own_session import OwnSession
from mpc_protocols.wire import Wire
from runner.bench.registry import Task


class JobWire(OwnSession):
    """A fork of the party's wire for one job, with a session id of its own: no mask of another job is ever
    met again."""

    def __init__(self, wire: Wire, number: int) -> None:
        super().__init__(wire, f"job {number}")


def barrier(wire: Wire) -> None:
    """Wait for all parties this one is linked with; afterwards all logical clocks are equal."""
    everybody = [*range(wire.computing), *wire.contributors]
    peers = [p for p in everybody if p != wire.me and (p < wire.computing or wire.me < wire.computing)]
    for _ in range(2):
        for peer in peers:
            wire.send(peer, b"")
        for peer in peers:
            wire.receive(peer, 0)


def repeat(wire: Wire, task: Task, warmup: int, repeats: int) -> dict[str, Any]:
    """Run and check the task; per repetition (warm-up left out) began, ended, cpu_s, bytes_sent,
    bytes_received, rounds."""
    memory, kept, result = _Memory(), [], None
    for number in range(warmup + repeats):
        result = None  # the one before must not count as memory
        task.before()
        barrier(wire)
        before, cpu, began = wire.traffic(), time.process_time(), time.monotonic()
        result = task.run()
        ended, used, after = time.monotonic(), time.process_time() - cpu, wire.traffic()
        if number >= warmup:
            kept.append(
                {
                    "began": began,
                    "ended": ended,
                    "cpu_s": used,
                    "bytes_sent": after.bytes_sent - before.bytes_sent,
                    "bytes_received": after.bytes_received - before.bytes_received,
                    "rounds": after.rounds - before.rounds,
                }
            )
    usage = {"peak_mb": memory.peak(), "above_mb": memory.above()}
    barrier(wire)  # what the check costs must not fall into anybody's last repetition
    task.check(result)
    return {"repetitions": kept, **usage}


class _Memory:
    """Resident memory of this process in MB, and its peak since now (on Linux; elsewhere since the process
    began)."""

    def __init__(self) -> None:
        self._linux = sys.platform == "linux"
        gc.collect()
        if self._linux:
            with suppress(
                OSError, AttributeError
            ):  # give back what making the input has freed; not in every C library
                ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._start = self._status("VmRSS:") if self._linux else self.peak()

    def peak(self) -> float:
        """The most so far."""
        if self._linux:
            return self._status("VmHWM:")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)

    def above(self) -> float:
        """The most so far above what there was at the start: the input is not counted."""
        return max(0.0, self.peak() - self._start)

    @staticmethod
    def _status(field: str) -> float:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6
