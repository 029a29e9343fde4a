"""The party processes of a benchmark as the launcher sees them: started together, asked, and ended together.

Each has a process group of its own, so that Ctrl-C reaches the launcher alone; `close` ends them, and they
end by themselves when the launcher's end of their pipes closes, however the launcher ended. The first cause
of a failure is raised.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpc_protocols.errors import PeerLost
from parties.certificates import make_all
from parties.data.scratch import Scratch
from runner.bench.net.netns import Namespaces
from runner.bench.net.network import Net
from runner.launch.children import environment
from runner.launch.first_failure import Report, as_error, first_cause
from runner.launch.ports import free_ports

PROGRAM = (sys.executable, "-P", "-m", "runner.bench.running.party")
_OTHERS_S = 3.0
"""How long to wait, after one party's failure, for what the others say."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def party_names(parties: int, computing: int = 3) -> list[str]:
    """p0, p1, p2 compute; c3 and so on contribute."""
    return [f"{'p' if number < computing else 'c'}{number}" for number in range(parties)]


@dataclass
class _Child:
    name: str
    process: subprocess.Popen[bytes]
    pending: bytes = b""
    answer: dict[str, Any] | None = None

    def say(self, line: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()


class Parties:
    """The processes of one session; a context manager."""

    def __init__(
        self, parties: int, computing: int, tls: bool, net: Net, namespaces: Namespaces | None
    ) -> None:
        """computing: how many of them do, the first ones. namespaces: where each party runs (then `net` is
        theirs); None: on loopback, the network emulated in the session."""
        self._children: list[_Child] = []
        self._directory = Scratch()
        names = party_names(parties, computing)
        try:
            settings = self._settings(names, computing, tls, net, namespaces)
            for number, name in enumerate(names):
                command = [*(namespaces.prefix(number) if namespaces else ()), *PROGRAM]
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment() | _ONE_THREAD,
                    process_group=0,
                )
                self._children.append(_Child(name, process))
                self._children[-1].say(
                    {
                        **settings,
                        "me": name,
                        "cert": settings["cert"] and f"{settings['cert']}/{name}.crt",
                        "key": settings["cert"] and f"{settings['cert']}/{name}.key",
                    }
                )
        except BaseException:
            self.close()
            raise

    def _settings(
        self, names: Sequence[str], computing: int, tls: bool, net: Net, namespaces: Namespaces | None
    ) -> dict[str, Any]:
        directory = self._directory.path
        if tls:
            make_all(directory, list(names))
        ports = free_ports(len(names))
        network = None
        if namespaces is None and net.emulated:
            network = {"delay_s": net.delay_s} | (
                {} if net.bytes_per_s is None else {"bytes_per_s": net.bytes_per_s}
            )
        return {
            "tls": tls,
            "cert": str(directory) if tls else None,
            "ca": f"{directory}/ca.crt" if tls else None,
            "network": network,
            "digest": hashlib.sha256(b"cosynth bench").hexdigest(),
            "parties": [
                {
                    "name": name,
                    "host": namespaces.address(number) if namespaces else "127.0.0.1",
                    "port": ports[number],
                    "role": "compute" if number < computing else "contribute",
                }
                for number, name in enumerate(names)
            ],
        }

    def run(self, **job: Any) -> list[dict[str, Any]]:
        """Give every party the same job; their figures by wire number. Raises the first cause of a failure."""
        for child in self._children:
            child.answer = None
            child.say(job)
        self._await_answers()
        reports = [
            Report(
                child.name,
                child.answer["failed"]["code"],
                child.answer["failed"]["sentence"],
                child.answer["failed"]["time"],
            )
            for child in self._children
            if child.answer and "failed" in child.answer
        ]
        cause = first_cause(reports)
        if cause is not None:
            raise as_error(cause)
        gone = [child.name for child in self._children if child.answer is None]
        if gone:
            raise PeerLost(
                f"The benchmark's party {gone[0]} ended without a word (killed, or out of memory); run again."
            )
        return [child.answer["result"] for child in self._children if child.answer]

    def _await_answers(self) -> None:
        """Until every party has answered or ended; only a moment longer once one has failed."""
        deadline: float | None = None
        with selectors.DefaultSelector() as selector:
            for child in self._children:
                assert child.process.stdout is not None
                selector.register(child.process.stdout, selectors.EVENT_READ, child)
            while selector.get_map() and (deadline is None or time.monotonic() < deadline):
                for key, _ in selector.select(
                    None if deadline is None else max(0.0, deadline - time.monotonic())
                ):
                    child = key.data
                    chunk = os.read(key.fd, 1 << 16)
                    child.pending += chunk
                    if b"\n" in child.pending:
                        line, child.pending = child.pending.split(b"\n", 1)
                        child.answer = json.loads(line)
                    if child.answer is not None or not chunk:
                        selector.unregister(key.fileobj)
                        if child.answer is None or "failed" in child.answer:
                            deadline = deadline or time.monotonic() + _OTHERS_S

    def __enter__(self) -> Parties:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; none is left."""
        for child in self._children:
            child.process.kill()
        for child in self._children:
            child.process.wait()
            for pipe in (child.process.stdin, child.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._children = []
        self._directory.close()
