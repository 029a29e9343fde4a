"""The demo's study between processes of this machine, each with a folder, certificate, ledger and port of its
own.

For checks of what only whole processes show: certificates, faults, traces that they leave. Nobody's data: the
survey's rows, few of them, with marks in a column that no study uses. All waiting is for something to happen,
with an end to it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parties import certificates
from runner.launch.ports import free_ports
from runner.starting.demo import CUSTODIANS, prepare

PROGRAM: tuple[str, ...] = ("-m", "runner")
"""What a party runs; a mutation of processes puts another one here."""
PATIENCE_S = 240.0
ROWS = 150
MARK = "MARKED-REMARK-7715"
"""Stands in every row of every custodian's file, in a column that the study does not use."""
PRIVATE = """\
data = "{name}.csv"
out = "out"
cert = "{name}.crt"
key = "{name}.key"
ca = "ca.crt"

[ledger]
file = "ledger.db"
dataset = "people of {name}"
"""


class Stuck(Exception):
    """Something did not happen in PATIENCE_S."""


@contextmanager
def _core_files() -> Iterator[None]:
    """What is started here may leave a core file, as far as this system lets it: a party must forbid that
    itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Raise `Stuck` if it never comes true."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise Stuck(f"{what} did not happen in {PATIENCE_S:g} s.")
        time.sleep(0.01)


@dataclass(frozen=True)
class End:
    """How a party ended: its exit code, and all that it said."""

    code: int
    output: str
    complaint: str

    @property
    def unforeseen(self) -> bool:
        """Whether it ended by something that nobody foresaw: a traceback, or the sentence in the place of
        one."""
        return any(words in self.output + self.complaint for words in ("Traceback", "Internal error"))


class Party:
    """One party's folder, and its process once it is started."""

    def __init__(self, root: Path, name: str, port: int) -> None:
        self.name, self.port, self.folder, self.out = name, port, root / name, root / name / "out"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, program: Sequence[str] = (), **environment: str) -> None:
        """Run it. program: what runs PROGRAM, if something does. environment: variables besides the usual
        ones."""
        scratch = self.folder / "said"
        scratch.mkdir()
        variables = {
            **os.environ,
            "COSYNTH_LEDGER": str(self.folder / "ledger.db"),
            "OMP_NUM_THREADS": "1",
            **environment,
        }
        command = [
            sys.executable,
            *program,
            *PROGRAM,
            "run",
            "study.toml",
            "--party",
            self.name,
            "--private",
            "private.toml",
        ]
        with (
            (scratch / "stdout").open("wb") as output,
            (scratch / "stderr").open("wb") as complaint,
            _core_files(),
        ):
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaint,
                env=variables,
            )

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """Its process."""
        assert self.process is not None
        return self.process

    def events(self) -> list[dict[str, Any]]:
        """The whole lines of its events.jsonl."""
        try:
            text = (self.out / "events.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def happened(self, phase: str, event: str, times: int = 1) -> bool:
        """Whether this is among its events, so many times; also true once it has ended."""
        found = [each for each in self.events() if (each["phase"], each["event"]) == (phase, event)]
        return len(found) >= times or self.running.poll() is not None

    def end(self) -> End:
        """Wait for its end. Raises `Stuck`."""
        wait_for(lambda: self.running.poll() is not None, f"The end of party {self.name}")
        said = [(self.folder / "said" / name).read_text(errors="replace") for name in ("stdout", "stderr")]
        return End(self.running.returncode, *said)

    def kill(self) -> None:
        """Make sure that it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Deployment:
    """All parties. credentials: their certificates and keys, with the CA's own key."""

    root: Path
    parties: Sequence[Party]
    credentials: Path

    def __getitem__(self, name: str) -> Party:
        return next(party for party in self.parties if party.name == name)

    def left(self) -> dict[str, bytes]:
        """All that the parties have written, by place: not what they were given."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self._written()}

    def modes(self) -> Iterator[tuple[str, int]]:
        """What the parties have written so far, by place, and who may use it: nine bits. Also while they run."""
        for path in self._written():
            with suppress(FileNotFoundError):  # gone meanwhile
                yield str(path.relative_to(self.root)), path.stat().st_mode & 0o777

    def _written(self) -> list[Path]:
        given = (".csv", ".key", ".crt", "study.toml", "private.toml")
        return [
            path
            for party in self.parties
            for path in _files(party.folder)
            if not path.name.endswith(given) or path.name == "synthetic.csv"
        ]


def _files(folder: Path) -> Iterator[Path]:
    """All in it and below, also while others write there."""
    for place, _, names in os.walk(folder):
        for name in names:
            if (path := Path(place) / name).is_file():
                yield path


@contextmanager
def deployed(rounds: int = 3, silence_s: int = 10, connect_s: int = 60) -> Iterator[Deployment]:
    """Folders of all parties; no process is left afterwards.

    rounds: of the algorithm. silence_s: until a party is lost. connect_s: until one that has not come is
    missed.
    """
    with TemporaryDirectory(prefix="cosynth-audit-") as name:
        root = Path(name)
        ports = free_ports(len(CUSTODIANS))
        study = prepare(root / "study", ports)
        text = study.read_text(encoding="utf-8").replace("rounds = 12", f"rounds = {rounds}")
        text = text.replace(
            "epsilon = 1.0", "epsilon = 8.0"
        )  # else so few rows would get independent columns
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("data = "))
        text = text.replace("silence_s = 10", f"silence_s = {silence_s}")
        text = text.replace("connect_s = 60", f"connect_s = {connect_s}")
        credentials = root / "credentials"
        certificates.make_all(credentials, list(CUSTODIANS), keep_ca_key=True)
        parties = [Party(root, name, port) for name, port in zip(CUSTODIANS, ports, strict=True)]
        for party in parties:
            party.folder.mkdir()
            (party.folder / "study.toml").write_text(text, encoding="utf-8")
            (party.folder / "private.toml").write_text(PRIVATE.format(name=party.name), encoding="utf-8")
            head, *rows = (study.parent / f"{party.name}.csv").read_text(encoding="utf-8").splitlines()
            lines = [f"{head},remark", *(f"{row},{MARK}" for row in rows[:ROWS])]
            (party.folder / f"{party.name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
            for file in (f"{party.name}.crt", f"{party.name}.key", "ca.crt"):
                shutil.copy(credentials / file, party.folder)
        try:
            yield Deployment(root, parties, credentials)
        finally:
            for party in parties:
                party.kill()
