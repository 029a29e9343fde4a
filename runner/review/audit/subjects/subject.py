"""What is audited: a study's public parameters, and rows to audit them on. No private data of a study is ever
read.

Without a study it is the demo's, on the survey's rows, which are public; a study that is named is audited on
invented rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from mpc_protocols.backend import BACKENDS, ClearBackend, DistributedBackend
from mpc_protocols.errors import UsageError
from mpc_protocols.registry import not_installed
from runner.review.audit.check import Profile
from runner.review.audit.subjects.in_memory.arena import Arena, Codes, Coins
from runner.starting.demo import coded, prepare, survey
from runner.study import Study, load

T = TypeVar("T")
MAX_PAIR = 256
"""Cells of a pair of columns that runs in memory are made with."""
COLUMNS = 3
ROWS = 60
"""Rows of a custodian in a run in memory."""
FAR_US = 20_000
"""Between parties that are far apart: two continents."""


@dataclass(frozen=True)
class Part:
    """The `number`th of so many parts of each campaign."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """From "2/5". Raises `UsageError`."""
        number, _, of = text.partition("/")
        if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return cls(int(number), int(of))
        raise UsageError(f"--part {text}: name a part and how many there are, such as 2/5.")


def silent(check: str, done: int, of: int, words: str) -> None:
    """Tell nobody how far a campaign is."""


@dataclass(frozen=True)
class Subject:
    """A study, rows of the study's codes, and how hard to look. backends: names of those that are audited, in
    order.

    part: of campaigns of many cases, what is done now. tell: (check, cases done, of how many, what was found)
    as one goes on.
    """

    study: Study
    rows: Codes
    backends: tuple[str, ...]
    profile: Profile
    seed: str
    invented: bool
    part: Part = Part()
    tell: Callable[[str, int, int, str], None] = silent

    @property
    def distributed(self) -> list[DistributedBackend]:
        """The backends of parties that compute together; the study's own as it configures it."""
        study = self.study
        found = (study.descriptor if name == study.backend else BACKENDS[name] for name in self.backends)
        return [backend for backend in found if isinstance(backend, DistributedBackend)]

    @property
    def clear(self) -> ClearBackend:
        """A backend in the clear, for the reference. Raises `UsageError` if there is none."""
        for backend in BACKENDS:
            if isinstance(backend, ClearBackend):
                return backend
        raise UsageError("No backend computes in the clear, so that there is nothing to compare with.")

    def at_least(self, profile: Profile) -> bool:
        """Whether the audit takes that much time."""
        return self.profile >= profile

    def share(self, cases: Sequence[T]) -> list[T]:
        """Of these cases, what belongs to this part."""
        return list(cases[self.part.number - 1 :: self.part.of])

    def coins(self, label: str) -> Coins:
        """Randomness of a run that is repeated with the same seed."""
        return Coins(f"{self.seed} {label}")

    def generator(self, label: str) -> np.random.Generator:
        """Of public choices of the audit, such as which row leaves a table."""
        digest = hashlib.sha256(f"{self.seed} {label}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "big"))

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The study's first columns that are small enough for runs in memory; others are invented if it has
        too few."""
        sizes = {name: size for name, size in self.study.domain.sizes.items() if 2 <= size <= MAX_PAIR**0.5}
        chosen = dict(list(sizes.items())[:COLUMNS])
        for number in range(COLUMNS - len(chosen)):
            chosen[f"added {number}"] = 2 + number
        return chosen

    def arena(self, backend: DistributedBackend, **facts: object) -> Arena:
        """The fewest parties of a backend and a custodian that contributes, under the study's adjacency and
        unit."""
        privacy = self.study.privacy
        usual: dict[str, Any] = {
            "adjacency": privacy.adjacency,
            "unit_rows": privacy.unit.rows,
            "row_cap": 4 * 1024,
        }
        return Arena.of(backend, self.sizes, **{**usual, **facts})

    @property
    def arenas(self) -> dict[str, Arena]:
        """By the words for it, each distributed backend's `arena`, of parties beside each other and far apart."""
        found = {backend.name: self.arena(backend) for backend in self.distributed}
        return found | {
            f"{name}, far apart": replace(arena, delay_us=FAR_US) for name, arena in found.items()
        }

    def tables(self, parties: int, count: int = ROWS) -> list[Codes]:
        """Rows of each party over `sizes`: the subject's own, as far as its columns go."""
        names = list(self.study.domain.sizes)
        columns = []
        for number, (name, size) in enumerate(self.sizes.items()):
            if name in names:
                columns.append(self.rows[:, names.index(name)])
            else:
                columns.append((self.rows[:, 0] + number) % size)
        drawn = self.generator("rows").choice(len(self.rows), (parties, count))
        return [np.stack([column[part] for column in columns], axis=1) for part in drawn]


@contextmanager
def subject(path: Path | None, backends: Sequence[str], profile: Profile, seed: str) -> Iterator[Subject]:
    """The study at `path`, or the demo's. backends: none for all that share data by rows and are installed.

    Raises `StudyInvalid`, `UsageError`.
    """
    for name in backends:
        if name not in BACKENDS:
            raise UsageError(f"There is no backend {name!r}; there are {', '.join(BACKENDS.names)}.")
    with TemporaryDirectory(prefix="cosynth-audit-") as folder:
        if path is None:
            study = load(prepare(Path(folder), (7101, 7102, 7103)))
            rows, chosen = coded(survey(), study.domain), _chosen(study, backends)
            yield Subject(study, rows, chosen, profile, seed, invented=False)
        else:
            study = load(path)
            yield Subject(study, invented_rows(study), _chosen(study, backends), profile, seed, invented=True)


def _chosen(study: Study, named: Sequence[str]) -> tuple[str, ...]:
    """Backends that share data by rows: the named ones, or all whose packages are installed. Raises
    `UsageError`."""
    chosen = []
    for backend in BACKENDS:
        lack = not_installed(study.descriptor if backend.name == study.backend else backend)
        if lack is not None and backend.name in named:
            raise UsageError(f"--backend {backend.name} {lack}.")
        if "horizontal" in backend.partitions and (backend.name in named if named else lack is None):
            chosen.append(backend.name)
    return tuple(chosen)


def invented_rows(study: Study, count: int = 2000) -> Codes:
    """Rows of nobody, uneven and related, over the study's columns; the same each time."""
    rng = np.random.default_rng(count)
    first = rng.random(count) ** 2
    columns = []
    for size in study.domain.sizes.values():
        mixed = np.where(rng.random(count) < 0.6, first, rng.random(count) ** 2)
        columns.append(np.minimum((mixed * size).astype(np.int64), size - 1))
    return np.stack(columns, axis=1)
