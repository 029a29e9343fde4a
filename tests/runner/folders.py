"""A deployment on one machine: a folder per party with its own study file, table, certificate, key and
private file, no more.

folders = Folders.make(tmp_path, small.write(tmp_path / "study"))
ends = folders.run()                                      # every party a `run --party` process, in a random order
folders["west"].edit("study.toml", ("4.0", "4.5"))
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from parties import certificates
from runner.review.audit.subjects.processes.deployment import PRIVATE
from tests.runner import small, split
from tests.runner.processes import End, Program


class Folder:
    """What one party has."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.options: tuple[str, ...] = ()
        self.module = "runner"
        self.out, self.ledger = path / "out", path / "ledger.db"

    def __truediv__(self, file: str) -> Path:
        return self.path / file

    def edit(self, file: str, *changes: tuple[str, str]) -> None:
        """Replace texts that must occur."""
        text = (self / file).read_text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (self / file).write_text(text)

    def start(self, *more: str) -> Program:
        """Its `run --party`, in its own folder. more: options."""
        return Program(
            "run",
            "study.toml",
            "--party",
            self.name,
            "--private",
            "private.toml",
            *self.options,
            *more,
            ledger=self.ledger,
            scratch=self.path / "scratch",
            cwd=self.path,
            module=self.module,
        )


class Folders:
    """All parties' folders."""

    def __init__(self, root: Path, trial: small.Trial | split.Trial) -> None:
        self.root, self.trial = root, trial
        self._folders = {name: Folder(root / name, name) for name in trial.names}

    @classmethod
    def make(cls, root: Path, trial: small.Trial | split.Trial, certify: bool = True) -> Folders:
        """One folder per party; the study names nobody's data."""
        made = cls(root, trial)
        text = "".join(
            line
            for line in trial.path.read_text().splitlines(keepends=True)
            if not line.startswith("data = ")
        )
        if certify:
            certificates.make_all(root / "certs", list(trial.names), keep_ca_key=True)
        for folder in made:
            folder.path.mkdir()
            (folder / "study.toml").write_text(text)
            private = PRIVATE.format(name=folder.name)
            if folder.name in trial.rows:
                shutil.copy(trial.path.parent / f"{folder.name}.csv", folder.path)
            else:
                private = private.replace(f'data = "{folder.name}.csv"\n', "")
            (folder / "private.toml").write_text(private)
            if certify:
                for file in (f"{folder.name}.crt", f"{folder.name}.key", "ca.crt"):
                    shutil.copy(root / "certs" / file, folder.path)
        return made

    def __iter__(self) -> Iterator[Folder]:
        return iter(self._folders.values())

    def __getitem__(self, name: str) -> Folder:
        return self._folders[name]

    def run(self, *names: str, replace: bool = False) -> dict[str, End]:
        """Every party (or those named), started in a random order; how each ended."""
        with self.started(names, *["--replace"] * replace) as programs:
            return {name: program.end() for name, program in programs.items()}

    @contextmanager
    def started(self, names: Sequence[str] = (), *more: str) -> Iterator[dict[str, Program]]:
        """The processes, by name; none of them is left afterwards."""
        order = random.sample(names or list(self._folders), len(names or self._folders))
        programs: dict[str, Program] = {}
        try:
            for name in order:
                programs[name] = self._folders[name].start(*more)
            yield programs
        finally:
            for program in programs.values():
                program.kill()
