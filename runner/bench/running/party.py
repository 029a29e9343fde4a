"""A party process of a benchmark: one session, in which it runs the jobs that its launcher writes to standard
input.

    in      a JSON line of settings, then one per job
    out     a JSON line per job with this party's figures, or one that says why the process ends

It ends when its launcher does, however that ends: its standard input is closed then.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError, Interrupted, UsageError
from parties.session import Peer, SessionConfig, leave, run_session
from runner.bench import registry
from runner.bench.net import shim
from runner.bench.registry import Task
from runner.bench.running.repeat import JobWire, repeat
from runner.failures import describe
from runner.version import PROTOCOL

if TYPE_CHECKING:
    from parties.session import SessionWire

Lines = queue.SimpleQueue[dict[str, Any]]


def main() -> None:
    """The process."""
    settings = json.loads(sys.stdin.readline())
    lines: Lines = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), name="launcher", daemon=True).start()
    code = 0
    try:
        run_session(_config(settings), partial(_serve, lines), lambda *_, **__: None)
    except BaseException as error:
        log = (
            None
            if isinstance(error, CosynthError)
            else Path(tempfile.mkdtemp(prefix="cosynth-bench-")) / "party.log"
        )
        code, sentence = describe(error, log)
        if not isinstance(error, Interrupted):
            _tell({"failed": {"code": code, "sentence": sentence, "time": time.monotonic()}})
    leave(code)


def _listen(lines: Lines) -> None:
    for line in sys.stdin:
        lines.put(json.loads(line))
    os._exit(0)


def _tell(line: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(line).encode() + b"\n")


def _config(settings: dict[str, Any]) -> SessionConfig:
    network = settings["network"]
    cert, key, ca = (Path(settings[name]) if settings[name] else None for name in ("cert", "key", "ca"))
    return SessionConfig(
        me=settings["me"],
        parties=tuple(Peer(**peer) for peer in settings["parties"]),
        study_digest=bytes.fromhex(settings["digest"]),
        protocol=PROTOCOL,
        insecure_loopback=not settings["tls"],
        facts={"data": True},
        connect_s=60.0,
        silence_s=60.0,
        cert=cert,
        key=key,
        ca=ca,
        way_in=None if network is None else shim.way_in(shim.Network(**network)),
    )


def _serve(lines: Lines, wire: SessionWire) -> None:
    """Jobs until the launcher closes the input (`_listen` ends the process then)."""
    benches = registry.load()
    for number in range(sys.maxsize):
        job = lines.get()
        bench = benches[job["bench"]]
        if not isinstance(bench, registry.Kernel):
            raise UsageError(f"The benchmark {bench.name} does not run between connected parties.")
        _tell({"result": WHAT[job["what"]](bench, JobWire(wire, number), wire, job)})


def _protocol(bench: Any, job_wire: Any, wire: SessionWire, job: dict[str, Any]) -> dict[str, Any]:
    """The protocol itself."""
    return repeat(job_wire, bench.prepare(job_wire, job["params"]), job["warmup"], job["repeats"])


def _mpyc(bench: Any, job_wire: Any, wire: SessionWire, job: dict[str, Any]) -> dict[str, Any]:
    """The same work by MPyC's secure arrays; contributors only stand by."""
    task = bench.mpyc(wire.mpyc(), job["params"]) if wire.me < wire.computing else Task(lambda: None)
    return repeat(job_wire, task, job["warmup"], job["repeats"])


def _floor(bench: Any, job_wire: Any, wire: SessionWire, job: dict[str, Any]) -> dict[str, Any]:
    """The same work in the clear at P0; the others stand by."""
    task = bench.floor(job["params"]) if wire.me == 0 else None
    return repeat(job_wire, task or Task(lambda: None), job["warmup"], job["repeats"])


WHAT: dict[str, Callable[[Any, Any, SessionWire, dict[str, Any]], dict[str, Any]]] = {
    "protocol": _protocol,
    "mpyc": _mpyc,
    "numpy": _floor,
}

if __name__ == "__main__":
    main()
