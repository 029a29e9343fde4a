"""Builds that are broken on purpose: the audit must find each fault by a check that is named for it, or it
proves nothing.

A mutation replaces functions of the product while a block runs, in a process of its own (`campaign`): no file
changes. Numbers are those of `docs/design/audit.md` 4, which also lists the faults that no mutation makes
yet.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from mpc_protocols.errors import UsageError
from mpc_protocols.registry import modules_of
from runner.launch import ports
from runner.review.audit.broken_builds import faults
from runner.review.audit.broken_builds.faults.mutation import Mutation
from runner.review.audit.side_by_side import side_by_side

TIMEOUT_S = 1800


@dataclass(frozen=True)
class Caught:
    """What became of a mutation. caught_by: of the checks named for it, those that failed, with any seed.

    seeds: with how many it was tried. caught: with how many of these a check named for it failed.
    """

    name: str
    words: str
    expected: tuple[str, ...]
    caught_by: tuple[str, ...]
    seeds: int = 1
    caught: int = 0
    wall_s: float = 0.0

    @property
    def is_noticed(self) -> bool:
        """Whether a check that is named for it failed, with each seed."""
        return self.caught == self.seeds


def _all_mutations() -> tuple[Mutation, ...]:
    """Those of every file in `runner/review/audit/broken_builds/faults`, and of those for research, by
    number."""
    mutations: list[Mutation] = []
    for module in modules_of(faults.__name__, research="runner.review.audit.research.faults"):
        mutations += getattr(import_module(module), "MUTATIONS", ())
    return tuple(sorted(mutations, key=lambda mutation: (mutation.name[0], int(mutation.name[1:]))))


MUTATIONS = _all_mutations()


def named(name: str) -> Mutation:
    """The mutation of this name. Raises KeyError."""
    return {mutation.name: mutation for mutation in MUTATIONS}[name]


def meant(checks: Sequence[str], only: Sequence[str]) -> list[Mutation]:
    """The mutations for which one of these checks is named; with `only`, of these. Raises `UsageError` for a
    false name."""
    names = [mutation.name for mutation in MUTATIONS]
    for name in only:
        if name not in names:
            raise UsageError(f"There is no broken build {name!r}; there are {', '.join(names)}.")
    return [
        mutation
        for mutation in MUTATIONS
        if set(mutation.expected) & set(checks) and (not only or mutation.name in only)
    ]


def campaign(
    meant: Sequence[Mutation],
    checks: Sequence[str],
    study: Path | None,
    backend: str,
    seeds: Sequence[str],
    jobs: int = 1,
) -> Iterator[Caught]:
    """Each mutation in a process of its own, with those checks named for it that are among `checks`, once
    with each seed; so many at a time, their results in order."""
    tasks = [partial(_caught, mutation, checks, study, backend, seeds) for mutation in meant]
    for mutation, caught in zip(meant, side_by_side(tasks, jobs), strict=True):
        yield caught or Caught(mutation.name, mutation.words, mutation.expected, (), len(seeds))


def _caught(
    mutation: Mutation, checks: Sequence[str], study: Path | None, backend: str, seeds: Sequence[str]
) -> Caught:
    began = time.perf_counter()
    named = [name for name in mutation.expected if name in checks]
    failed = _failed(mutation, named, study, backend, seeds)
    return Caught(
        mutation.name,
        mutation.words,
        mutation.expected,
        tuple(name for name in named if any(name in each for each in failed)),
        len(seeds),
        sum(map(bool, failed)),
        time.perf_counter() - began,
    )


def _failed(
    mutation: Mutation, checks: Sequence[str], study: Path | None, backend: str, seeds: Sequence[str]
) -> list[list[str]]:
    """The checks that fail on the broken build, with each seed for which it came to an end."""
    module = "runner.review.audit.broken_builds.broken"
    command = [
        sys.executable,
        "-m",
        module,
        mutation.name,
        backend,
        str(study or ""),
        json.dumps(seeds),
        json.dumps(ports.share()),
        *checks,
    ]
    with suppress(subprocess.TimeoutExpired):
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S * len(seeds), check=False
        )
        return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
    return []
