"""Real party processes over real sockets with TLS, for tests.

`Trio` keeps one session alive (three computing processes, optionally contributors) and runs many jobs in it;
a job costs milliseconds instead of a start. In a test:

    def job(wire, n):                       # any importable function: first argument the wire, then plain arguments
        wire.send(1, bytes(n)) ...
        return {"me": wire.me}              # plain data, bytes, tuples, NumPy arrays

    def test_it(trio):                      # fixture in tests/conftest.py; `trio_and_two` has two contributors as well
        results = trio.run(job, 5)          # one result per wire number
        results = trio.run(job, each=[(1,), (2,), (3,)])     # different arguments per party

Each job gets a fresh stream (`wire.fork`) and starts after two empty exchanges, so that logical clocks are
equal and differences of `wire.traffic()` are exact. A job that raises at any party fails the test with all
tracebacks, and the next job gets new processes. With `Trio(directory, tap=True)` the list TAPPED of this
module, in each party's process, holds every message sent and received since the start. `start` runs processes
of one's own for tests in which parties fail.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpc_protocols.errors import CosynthError
from parties import certificates
from parties.session import Peer, SessionConfig, SessionWire, leave, run_session
from parties.session.transport import codec
from tests.forks import ONE_THREAD, forked
from tests.patience import PATIENCE_S
from tests.worlds.ports import free_ports

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("north", "south", "east", "west", "hill", "lake")
DIGEST = bytes(range(32))
TAPPED: list[tuple[str, int, str, int, bytes]] = []
"""What the tap saw in this process, if its settings hold `"tap": true`: (direction, peer, stream, number,
payload)."""


def configs(
    directory: Path, computing: int = 3, contributors: int = 0, **changes: Any
) -> list[dict[str, Any]]:
    """Settings of every party, as the child processes take them (JSON): certificates are made in `directory`."""
    more = tuple(f"more{number}" for number in range(computing + contributors - len(NAMES)))
    names = (*NAMES, *more)[: computing + contributors]
    if not (directory / "ca.crt").exists():
        certificates.make_all(directory, [*NAMES, *more], keep_ca_key=True)
    peers = [
        {
            "name": name,
            "host": "127.0.0.1",
            "port": port,
            "role": "compute" if i < computing else "contribute",
        }
        for i, (name, port) in enumerate(zip(names, free_ports(len(names)), strict=True))
    ]
    return [
        {
            "me": name,
            "parties": [dict(peer) for peer in peers],
            "study_digest": DIGEST.hex(),
            "protocol": 1,
            "cert": str(directory / f"{name}.crt"),
            "key": str(directory / f"{name}.key"),
            "ca": str(directory / "ca.crt"),
            "facts": {"data": True},
            "connect_s": PATIENCE_S,
            "silence_s": PATIENCE_S / 2,
            **changes,
        }
        for name in names
    ]


def session_config(settings: dict[str, Any]) -> SessionConfig:
    """The validated configuration from a child's settings."""
    fields = dict(settings)
    fields["parties"] = tuple(Peer(**peer) for peer in fields["parties"])
    fields["study_digest"] = bytes.fromhex(fields["study_digest"])
    for path in ("cert", "key", "ca"):
        fields[path] = Path(fields[path]) if fields.get(path) else None
    if fields.get("listen"):
        fields["listen"] = tuple(fields["listen"])
    return SessionConfig(**fields)


class Child:
    """One party process: its events as they come, its outcome at the end."""

    def __init__(self, settings: dict[str, Any], body: str, arguments: Sequence[object] = ()) -> None:
        self.name = settings["me"]
        self.events: list[dict[str, Any]] = []
        self.outcome: dict[str, Any] | None = None
        self.started = time.monotonic()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        its_input, said = os.pipe()
        heard, its_output = os.pipe()
        self.process = forked(
            ["tests.trio"], os.environ | ONE_THREAD, ROOT, (its_input, its_output, self._errors.fileno())
        )
        os.close(its_input)
        os.close(its_output)
        self._input, self._output = os.fdopen(said, "wb"), os.fdopen(heard, "rb")
        self._buffer = b""
        self.say({"settings": settings, "body": body, "arguments": encode(list(arguments))})

    def say(self, line: dict[str, Any]) -> None:
        """Write a line to the child."""
        with suppress(BrokenPipeError):
            self._input.write(json.dumps(line).encode() + b"\n")
            self._input.flush()

    def line(self, timeout: float = PATIENCE_S) -> dict[str, Any] | None:
        """The next line from the child; None at its end. Raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(
                    f"party {self.name} said nothing for {timeout} s; before: {self.events[-3:]}\n{self.errors()}"
                )
            data = os.read(self._output.fileno(), 1 << 16)
            if not data:
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        if "event" in said:
            self.events.append(said["event"])
        if "outcome" in said:
            self.outcome = said["outcome"]
        return said

    def until(self, event: str) -> dict[str, Any]:
        """Wait for an event by name (also one that the body reported by `report`)."""
        while True:
            said = self.line()
            if said is None:
                raise AssertionError(
                    f"party {self.name} ended before '{event}': {self.outcome} {self.errors()}"
                )
            if said.get("event", {}).get("event") == event:
                return said["event"]

    def wait(self) -> int:
        """Read to the end; the exit code."""
        while self.line() is not None:
            pass
        return self.process.wait(PATIENCE_S)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def errors(self) -> str:
        """What it wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def end(self) -> None:
        """Kill it if it still runs and close the pipes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self._input, self._output):
            with suppress(BrokenPipeError):
                pipe.close()
        self._errors.close()


def start(
    settings: Sequence[dict[str, Any]], body: Callable[..., object] | str, *arguments: object
) -> list[Child]:
    """Party processes that run `body(wire, *arguments)` once."""
    return [Child(each, name_of(body), arguments) for each in settings]


def name_of(function: Callable[..., object] | str) -> str:
    """module:name of an importable function."""
    return function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"


def encode(value: object) -> str:
    """Plain data, bytes and arrays as text."""
    return base64.b64encode(codec.dumps(value)).decode()


def decode(text: str) -> Any:
    """The inverse of `encode`."""
    return codec.loads(base64.b64decode(text))


class JobFailed(AssertionError):
    """A job raised at some party, or did not end; holds every party's traceback."""


class Trio:
    """A session that runs jobs one after another. Processes are started by the first job."""

    def __init__(self, directory: Path, contributors: int = 0, computing: int = 3, **changes: Any) -> None:
        self._directory, self._contributors, self._computing, self._changes = (
            directory,
            contributors,
            computing,
            changes,
        )
        self._children: list[Child] = []

    def run(
        self,
        function: Callable[..., object] | str,
        *arguments: object,
        each: Sequence[Sequence[object]] | None = None,
    ) -> list[Any]:
        """Run `function(wire, *arguments)` (or `each[number]` as arguments) at every party; results by wire
        number."""
        if not self._children:
            self._children = start(
                configs(self._directory, self._computing, self._contributors, **self._changes), serve
            )
        for number, child in enumerate(self._children):
            own = arguments if each is None else each[number]
            child.say({"job": name_of(function), "arguments": encode(list(own))})
        results, failures = list[Any](), list[str]()
        for child in self._children:
            try:
                said = self._answer(child, PATIENCE_S if not failures else 2.0)
            except TimeoutError as error:
                said = {"failed": str(error)}
            if "failed" in said:
                failures.append(f"--- {child.name}:\n{said['failed']}")
            else:
                results.append(decode(said["result"]))
        if failures:
            self.close()
            raise JobFailed("\n".join(failures))
        return results

    def _answer(self, child: Child, timeout: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while True:
            said = child.line(max(0.0, deadline - time.monotonic()))
            if said is None:
                return {"failed": f"the process ended: {child.outcome} {child.errors()}"}
            if "result" in said or "failed" in said:
                return said

    def close(self) -> None:
        """End the processes."""
        for child in self._children:
            child.end()
        self._children = []


def serve(wire: SessionWire) -> None:
    """The body of a long-lived party: jobs from stdin until it closes."""
    for count, line in enumerate(sys.stdin):
        job = json.loads(line)
        stream = wire.fork(f"job {count}")
        try:
            synchronise(stream)
            result = encode(find(job["job"])(stream, *decode(job["arguments"])))
        except CosynthError as error:
            tell({"failed": f"{type(error).__name__}: {error.sentence}\n{traceback.format_exc()}"})
            raise
        except BaseException:
            tell({"failed": traceback.format_exc()})
            raise
        tell({"result": result})


def synchronise(wire: SessionWire) -> None:
    """Two empty exchanges between all parties that are linked: afterwards all logical clocks are equal."""
    peers = [
        p for p in range(len(wire.names)) if p != wire.me and (p < wire.computing or wire.me < wire.computing)
    ]
    for _ in range(2):
        for peer in peers:
            wire.send(peer, b"")
        for peer in peers:
            wire.receive(peer, 0)


def find(name: str) -> Callable[..., Any]:
    """The function of a module:name."""
    module, _, attribute = name.partition(":")
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        target = getattr(target, part)
    return target


def tell(line: dict[str, Any]) -> None:
    """Write a line to the parent, in one piece (several threads may speak)."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(line).encode() + b"\n")


def report(event: str, **fields: object) -> None:
    """A body tells the test how far it is."""
    tell({"event": {"phase": "body", "event": event, **fields}})


def main() -> None:
    """A child process."""
    order = json.loads(sys.stdin.readline())

    def observe(phase: str, event: str, **fields: object) -> None:
        tell({"event": {"phase": phase, "event": event, **fields}})

    code, outcome = 0, {}
    try:
        body, arguments = find(order["body"]), decode(order["arguments"])
        tap = (lambda *seen: TAPPED.append(seen)) if order["settings"].pop("tap", False) else None
        value = run_session(
            session_config(order["settings"]), lambda wire: body(wire, *arguments), observe, tap
        )
        outcome = {"value": encode(value)}
    except CosynthError as error:
        code, outcome = error.exit_code, {"sentence": error.sentence, "class": type(error).__name__}
    except BaseException:
        code, outcome = 1, {"sentence": traceback.format_exc()}
    tell({"outcome": {"code": code, **outcome}})
    leave(code)
