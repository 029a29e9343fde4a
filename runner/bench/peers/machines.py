"""One run of MP-SPDZ's virtual machines: a process a party, over TLS and loopback, held at gates.

A gate is a number of the programme's public input, which is a pipe here: a party that has come to it waits. When all have, nobody
computes, and the CPU clock of each process is read. So CPU is that of the step alone, like that of ours (`running.repeat`),
and all parties begin together. Seconds, bytes and rounds are those of MP-SPDZ's own timers. Each party has a folder of its own,
with links to what all share, since the pipe has one name. The processes end with the run, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from mpc_protocols.errors import CosynthError
from runner.bench.peers import programme
from runner.bench.peers.protocols import BATCHES, PeerProtocol
from runner.bench.peers.steps import Vector
from runner.bench.peers.tree import Tree
from runner.launch.ports import free_ports

SHARED: Final = ("Player-Data", "Programs/Bytecode", "Programs/Schedules")
HOSTS: Final = "hosts"
_STOPPED: Final = re.compile(r"Stopped timer (\d+) at (\S+) \((\S+) MB, (\d+) rounds\)")
_NOTHING: Final = (0.0, 0, 0)
_SETTLE_S: Final = 0.05
"""How long the parties get to come from the end of a timer to the gate behind it."""


@dataclass(frozen=True)
class PeerRun:
    """What one run took: its last repetition, or the mean of all (`PeerProtocol.ahead`). wall_s: of the slowest party. cpu_s,
    bytes_sent: by party; cpu_s is None where no process may read another's clock. rounds: of the party with the most. results:
    what was opened."""

    wall_s: float
    cpu_s: tuple[float, ...] | None
    bytes_sent: tuple[int, ...]
    rounds: int
    results: tuple[int, ...]


class _Party:
    """One process and the pipe that holds it."""

    def __init__(self, place: Path, command: Sequence[str], name: str, environment: dict[str, str]) -> None:
        gate = place / "Programs/Public-Input" / name
        gate.parent.mkdir(parents=True)
        os.mkfifo(gate)
        self._gate = os.open(gate, os.O_RDWR)  # for reading, too: neither side waits for the other to open
        self._said = place / "said"
        self.lines: list[str] = []
        self._rest = b""
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                process_group=0,
            )

    def open_gate(self) -> None:
        """Let the party through one gate."""
        os.write(self._gate, b"1\n")

    def read(self) -> bool:
        """Take what it has written; False at the end."""
        assert self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in lines]
        return bool(chunk)

    def stopped(self, timer: int) -> tuple[float, int, int] | None:
        """Seconds, bytes and rounds of a timer that has ended; None if it has not."""
        for line in self.lines:
            found = _STOPPED.match(line)
            if found and int(found[1]) == timer:
                return float(found[2]), round(float(found[3]) * 1e6), int(found[4])
        return None

    def last_words(self) -> str:
        """The last line of its messages."""
        lines = [*self.lines, *self._said.read_text(errors="replace").splitlines()]
        said = [line.strip() for line in lines if line.strip()]
        return said[-1].rstrip(".") if said else "it said nothing"

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._gate)


def run(tree: Tree, protocol: PeerProtocol, place: Path, name: str, inputs: tuple[Vector, Vector]) -> PeerRun:
    """Run the programme of this name, which was compiled in `place`, where certificates are. Raises `CosynthError`."""
    with _parties(tree, protocol, place, name, inputs) as parties, selectors.DefaultSelector() as selector:
        for party in parties:
            assert party.process.stdout is not None
            selector.register(party.process.stdout, selectors.EVENT_READ, party)

        def wait_for(timer: int | None) -> None:
            """Until this timer has stopped at every party; None: until all have ended."""
            while any(timer is None or party.stopped(timer) is None for party in parties):
                for key, _ in selector.select():
                    party = key.data
                    if not party.read():
                        selector.unregister(key.fileobj)
                        if party.process.wait() or timer is not None:
                            raise CosynthError(
                                f"MP-SPDZ's {protocol.executable} ended before its result was there: {party.last_words()}."
                            )
                if timer is None and not selector.get_map():
                    return

        def clocks() -> list[float] | None:
            time.sleep(_SETTLE_S)
            return _cpu_s([party.process.pid for party in parties])

        wait_for(programme.READY)
        cpu = [clocks()]
        for timer in range(1, programme.REPETITIONS + 1):
            for party in parties:
                party.open_gate()
            wait_for(timer)
            cpu.append(clocks())
        for party in parties:
            party.open_gate()
        wait_for(None)
        last = programme.REPETITIONS
        counted = range(1, last + 1) if protocol.ahead else (last,)
        figures = [[party.stopped(timer) or _NOTHING for timer in counted] for party in parties]
        opened = [line.split()[-1] for line in parties[0].lines if line.startswith(programme.RESULT)]
    walls, sent, rounds = (
        [sum(figure[which] for figure in of) / len(counted) for of in figures] for which in range(3)
    )
    before, after = cpu[counted[0] - 1], cpu[last]
    return PeerRun(
        max(walls),
        None
        if before is None or after is None
        else tuple((end - start) / len(counted) for start, end in zip(before, after, strict=True)),
        tuple(map(round, sent)),
        round(max(rounds)),
        tuple(map(int, opened)),
    )


@contextlib.contextmanager
def _parties(
    tree: Tree, protocol: PeerProtocol, place: Path, name: str, inputs: tuple[Vector, Vector]
) -> Iterator[list[_Party]]:
    """The processes, started; none is left."""
    ports = free_ports(protocol.parties)
    (place / HOSTS).write_text("".join(f"127.0.0.1:{port}\n" for port in ports), encoding="ascii")
    environment = os.environ | {"LD_LIBRARY_PATH": str(tree.path)}
    with contextlib.ExitStack() as stack:
        found = []
        for number in range(protocol.parties):
            own = place / f"{name}-P{number}-{time.monotonic_ns()}"
            (own / "Programs").mkdir(parents=True)
            for shared in SHARED:
                (own / shared).symlink_to(place / shared)
            if number < len(inputs):
                np.asarray(inputs[number], "<i8").tofile(own / f"in-Binary-P{number}-0")
            command = [str(tree.path / protocol.executable), "-p", str(number), "-ip", str(place / HOSTS)]
            batch = ["-b", str(max(1, len(inputs[0]) // BATCHES))] if protocol.ahead else []
            command += [
                "-IF",
                "in",
                "-OF",
                ".",
                "-o",
                "no_memory_output",
                *protocol.started_with,
                *batch,
                name,
            ]
            stack.callback(shutil.rmtree, own, ignore_errors=True)
            party = _Party(own, command, name, environment)
            stack.callback(party.close)
            found.append(party)
        yield found


def _cpu_s(processes: Sequence[int]) -> list[float] | None:
    """CPU seconds of these processes so far, all threads; None where the system does not tell (it is Linux that does)."""
    if sys.platform != "linux":
        return None
    try:  # the clock's number as clock_getcpuclockid(3) makes it
        return [time.clock_gettime((~process << 3) | 2) for process in processes]
    except OSError:  # one has ended, which whoever waits for it will say
        return None
