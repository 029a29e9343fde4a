"""Running the command line as real processes, watching what they do, and finding what they leave.

Every process gets a ledger of its own test (`COSYNTH_LEDGER`), never the user's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forks import ONE_THREAD, Forked, forked
from tests.patience import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[2]
CONTRACT_FILES = frozenset(
    {
        "synthetic.csv",
        "report.html",
        "run.json",
        "events.jsonl",
        "measurements.json",
        "model.npz",
        "cosynth.log",
    }
)
RESULTS = CONTRACT_FILES - {"events.jsonl", "cosynth.log"}
"""What only a finished run leaves."""


FORKED = ("runner", "tests.runner.dying", "tests.runner.streaming")
"""Programs that may begin where all is imported: what they replace is looked up when it is used."""


@dataclass(frozen=True)
class End:
    """How a process ended: exit code, everything on standard output and standard error; warnings of a result
    are apart."""

    code: int
    output: str
    complaint: str
    warnings: tuple[str, ...] = ()


def _start(
    module: str,
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    output: int,
    errors: int,
) -> Forked | subprocess.Popen[bytes]:
    if module in FORKED and sys.platform == "linux":
        with open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), output, errors)
            return forked([module, *arguments], environment, directory, streams)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=dict(environment),
    )


class Program:
    """`python -m runner` with these arguments, started at once in a directory of its own, with its own
    ledger."""

    def __init__(
        self, *arguments: object, ledger: Path, scratch: Path, cwd: Path | None = None, module: str = "runner"
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._files = [scratch / "stdout", scratch / "stderr"]
        with self._files[0].open("wb") as output, self._files[1].open("wb") as complaint:
            self.process = _start(
                module,
                [str(argument) for argument in arguments],
                cwd or scratch,
                os.environ | ONE_THREAD | {"COSYNTH_LEDGER": str(ledger)},
                output.fileno(),
                complaint.fileno(),
            )

    @property
    def pid(self) -> int:
        """Of the process itself."""
        return self.process.pid

    def send(self, number: int) -> None:
        """A signal."""
        self.process.send_signal(number)

    def end(self) -> End:
        """Wait for its end; if it does not come the process is killed and the test fails."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running after {PATIENCE_S} s: {self.said()}") from None
        output, complaint = self.said()
        lines = complaint.splitlines(keepends=True)
        warned = tuple(line.rstrip() for line in lines if line.startswith("WARNING: ")) if code == 0 else ()
        kept = complaint if code else "".join(line for line in lines if not line.startswith("WARNING: "))
        return End(code, output, kept, warned)

    def said(self) -> tuple[str, str]:
        """Standard output and standard error so far."""
        return self._files[0].read_text(errors="replace"), self._files[1].read_text(errors="replace")

    def kill(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


def run(*arguments: object, ledger: Path, scratch: Path, module: str = "runner") -> End:
    """A whole run of the program."""
    return Program(*arguments, ledger=ledger, scratch=scratch, module=module).end()


def run_whole(directory: Path, study: Path, *options: object) -> End:
    """A whole run of a study into `out` of a directory, which also has its ledger and scratch."""
    out, ledger, scratch = (directory / name for name in ("out", "ledger.db", "scratch"))
    return run("run", study, "--out", out, *options, ledger=ledger, scratch=scratch)


def parties(directory: Path) -> dict[str, int]:
    """Party processes that live and have `directory` among their arguments: name -> process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and any(os.fsencode(directory) in argument for argument in arguments):
                    found[os.fsdecode(arguments[arguments.index(b"--party") + 1])] = int(entry.name)
    return found


def gone(directory: Path) -> bool:
    """Whether all party processes of this directory end."""
    return eventually(lambda: not parties(directory))


def events(path: Path) -> list[dict[str, Any]]:
    """The whole lines of an events.jsonl."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def happened(path: Path, phase: str, event: str | None = None, times: int = 1) -> bool:
    """Whether an event of this phase (and name) is in events.jsonl, so many times."""
    found = [e for e in events(path) if e["phase"] == phase and event in (None, e["event"])]
    return len(found) >= times


def results(directory: Path) -> set[str]:
    """Names of finished or half-finished results below a directory: empty if a run has left none."""
    return {
        entry.name
        for entry in directory.rglob("*")
        if entry.name in RESULTS or "partial" in entry.name or entry.name.endswith(".part")
    }
