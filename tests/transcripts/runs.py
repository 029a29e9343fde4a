"""Runs in memory whose every key and coin is fixed: each backend, mode, partition and method of alignment;
all questions."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.engine import step
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.functionality import InputRule, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame
from mpc_protocols.psu.method import AlignmentMethod
from mpc_protocols.registry import not_installed
from mpc_protocols.vertical.partition import OwnRows, Partition, Population, VerticalData
from runner.review.audit.subjects.in_memory.arena import SESSION, Arena, Codes, Coins
from runner.review.audit.subjects.in_memory.union import MEMBERS, OWNERS, identifiers, methods, run_alignment
from runner.review.conformance.oracle.questions import Questions
from runner.review.conformance.oracle.runs import SIZES, table

COINS = Coins("transcripts")
ROWS = (41, 130, 0, 77, 5)
POPULATIONS: tuple[Population, ...] = ("intersection", "union")


@dataclass(frozen=True)
class Transcript:
    """All messages of a run. sha256: of each stream's messages, in the order of streams and parties."""

    messages: int
    sent: int
    sha256: str

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> Transcript:
        """The order in which messages of different streams travel is the scheduler's, and does not count."""
        streams: dict[tuple[str, int, int], list[bytes]] = defaultdict(list)
        for frame in frames:
            streams[frame.stream, frame.sender, frame.receiver].append(frame.payload)
        digest = hashlib.sha256()
        for key, payloads in sorted(streams.items()):
            digest.update(repr((key, [len(payload) for payload in payloads])).encode())
            digest.update(b"".join(payloads))
        return cls(len(frames), sum(len(frame.payload) for frame in frames), digest.hexdigest())

    def as_dict(self) -> dict[str, int | str]:
        """As it is recorded."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A run. lacks: the end of a sentence about packages that it needs and that are not here."""

    name: str
    frames: Callable[[], Sequence[Frame]]
    lacks: str | None = None


def cases() -> Mapping[str, Case]:
    """All, by name."""
    every = [*_of_backends(), *(case for method in methods() for case in _of_method(method))]
    return {case.name: case for case in every}


def _of_backends() -> list[Case]:
    cases = []
    for descriptor in BACKENDS:
        if not isinstance(descriptor, DistributedBackend):
            continue
        lacks = not_installed(descriptor)
        for security in descriptor.securities:
            backend = descriptor.secured(security)
            assert isinstance(backend, DistributedBackend)
            mode = f"{descriptor.name}, {security}"
            least, most = backend.computing
            for computing in range(least, min(most, least + 1) + 1):
                body = partial(_horizontal, backend, computing)
                cases.append(Case(f"{mode}, {computing} computing, rows", body, lacks))
            if "vertical" in backend.partitions:
                for population in POPULATIONS:
                    body = partial(_vertical, backend, population)
                    cases.append(Case(f"{mode}, columns, {population}", body, lacks))
    return cases


def _of_method(method: AlignmentMethod) -> list[Case]:
    people = [range(20), range(12, 40), range(8, 30)] if method.psu else [range(20)] * 3
    lists = [identifiers(numbers) for numbers in people]

    def case(mode: str, owners: int = OWNERS, **spec: Any) -> Case:
        name = f"alignment {method.name}, {mode}"
        return Case(name, lambda: run_alignment(method, lists[:owners], COINS, **spec).frames)

    cases = [case("semi-honest")]
    if method.proofs:
        cases.append(case("with proofs", security="proofs"))
    if not method.weakness("replace"):
        cases.append(case("malicious", malicious=True))
    names = [member.name for member in MEMBERS]
    if method.misfit(names, names) is None:
        cases.append(case("of three owners", len(names)))
    return cases


def _ask(oracle: MarginalOracle) -> None:
    """Every kind of question, with noise that decides nothing: what is picked, and so what travels, follows
    from the rows."""
    Questions(oracle).ask()


def _horizontal(backend: DistributedBackend, computing: int) -> Sequence[Frame]:
    facts = StudyFacts(
        SIZES,
        "add-remove",
        1,
        1000,
        SESSION,
        backend.leader(computing),
        inputs=None if backend.unchecked else InputRule(1000),
    )
    arena = Arena(backend, facts, computing, 2)
    rows = [table(ROWS[party % len(ROWS)], party, SIZES) for party in range(arena.parties)]
    return _run(arena, rows)


def _vertical(backend: DistributedBackend, population: Population) -> Sequence[Frame]:
    computing = max(2, backend.computing[0])
    columns = {"a": 0, "b": 1, "c": 1, "d": 0, "only": 1}
    missing = {name: size - 1 for name, size in SIZES.items()} if population == "union" else {}
    split = Partition((0, 1), columns, population, missing, 200)
    rng = np.random.default_rng(5)
    data: list[VerticalData] = []
    for party in range(computing):
        own = None
        if party < 2:
            rows = rng.permutation(200)[: 120 + 40 * party].astype(np.int64)
            codes = {
                name: rng.integers(0, SIZES[name], len(rows)).astype(np.uint8) for name in split.of(party)
            }
            own = OwnRows(rows, codes)
        data.append(VerticalData(split, own))
    facts = StudyFacts(SIZES, "add-remove", 1, 1000, SESSION, backend.leader(computing))
    return _run(Arena(backend, facts, computing, 0), data)


def _run(arena: Arena, data: Sequence[Codes | VerticalData]) -> Sequence[Frame]:
    """latency_bytes: what a dry run presumes; the engine would measure how fast this machine is at the
    moment."""
    with mock.patch.object(step, "latency_bytes_of", lambda delay_us: LATENCY_BYTES):
        return arena.run(_ask, data, COINS).frames
