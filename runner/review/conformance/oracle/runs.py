"""Runs of a backend in memory, with any of its parties: every message can be seen, changed, and is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import Backend, ClearBackend, DistributedBackend
from mpc_protocols.engine import step
from mpc_protocols.engine.latency import latency_bytes_of
from mpc_protocols.functionality import Guard, LocalCounts, MarginalOracle, StudyFacts, unobserved
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Traffic, Wire
from runner.review.audit.subjects.in_memory.arena import counter
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent
from runner.review.conformance.guards import Recorder

Body = Callable[[MarginalOracle], Any]
Data = LocalCounts | VerticalData | None
SMALL = Fraction(1, 64)
"""A variance without noise: sigma = 1/8, a draw is not 0 with a chance of 3e-14."""
SIZES = {"a": 3, "b": 4, "c": 5, "d": 2, "only": 1}
ROWS = (41, 230, 0, 77, 5)
"""Of each party, and again of further ones: one custodian has no rows."""


@dataclass(frozen=True)
class Parties:
    """How many compute and how many contribute."""

    computing: int
    contributing: int

    def __str__(self) -> str:
        return f"{self.computing} computing, {self.contributing} contributing"

    @property
    def number(self) -> int:
        return self.computing + self.contributing


@dataclass
class Ran:
    """What a run left. answers: what the body returned. opened: what each follower did. guards: of the
    computing parties."""

    answers: Any
    opened: list[list[NDArray[np.int64]]] = field(default_factory=list)
    guards: list[Recorder] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)


def parties_of(backend: Backend) -> list[Parties]:
    """The worlds that the suite tries: fewest and next numbers of computing parties, with and without
    contributors."""
    if isinstance(backend, ClearBackend):
        return [Parties(1, 4)]  # one guard, five custodians
    least, most = backend.computing
    return [Parties(n, others) for n in range(max(least, 1), min(most, least + 1) + 1) for others in (0, 2)]


def run_backend(
    backend: Backend,
    body: Body,
    data: Sequence[Data],
    parties: Parties,
    facts: StudyFacts | Sequence[StudyFacts],
    guards: Sequence[Recorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
    bend: Bend | None = None,
    histories: Sequence[History] | None = None,
    delay_us: int = 0,
) -> Ran:
    """Run `body` at the leader with everybody else taking part. Raises what the first party to fail raised.

    data: of each party, by number. facts: of all, or of each. histories: of the computing parties. delay_us:
    how far apart these take themselves to be.
    """
    each = [facts] * parties.number if isinstance(facts, StudyFacts) else list(facts)
    guards = list(guards) if guards is not None else [Recorder() for _ in range(parties.computing)]
    if isinstance(backend, ClearBackend):
        oracle = backend.oracle(each[0], together(data), guards[0], *(histories or ())[:1])
        return Ran(body(oracle), [], guards)
    assert isinstance(backend, DistributedBackend)
    leader = each[0].leader
    network = MemoryNetwork(parties.number, parties.computing, session_id=each[0].session, tap=tap)

    def party(plain: Wire) -> Any:
        wire = bent(plain, bend)
        mine, me = data[wire.me], wire.me
        guard: Guard = guards[me] if me < parties.computing else AllowAll()
        history = histories[me] if histories is not None and me < parties.computing else NO_HISTORY
        if me == leader:
            with backend.lead(wire, each[me], mine, guard, unobserved, history) as oracle:
                return body(oracle)
        if me < parties.computing:
            return backend.follow(wire, each[me], mine, guard, unobserved, history)
        assert mine is not None
        backend.contribute(wire, each[me], mine)
        return None

    # what a dry run presumes; the engine would measure how fast this machine is at the moment
    with mock.patch.object(step, "latency_bytes_of", lambda _: latency_bytes_of(delay_us)):
        results = network.run([party] * parties.number)
    opened = [results[number] for number in range(parties.computing) if number != leader]
    return Ran(results[leader], opened, guards, [network.traffic(number) for number in range(parties.number)])


def table(rows: int, party: int, sizes: Mapping[str, int]) -> NDArray[np.int64]:
    """Rows whose columns depend on one another, the same in every run."""
    rng = np.random.default_rng(party)
    first = rng.integers(0, 1 << 16, rows)
    return np.stack(
        [(first // 7**i + rng.integers(0, 2, rows)) % size for i, size in enumerate(sizes.values())], axis=1
    )


def rows_of(rows: Sequence[int], parties: Parties) -> list[int]:
    """Of each party, the given numbers repeated."""
    return [rows[party % len(rows)] for party in range(parties.number)]


def data_of(rows: Sequence[int], parties: Parties, sizes: Mapping[str, int] = SIZES) -> list[Data]:
    """Each party's counts."""
    return [counter(table(count, party, sizes), sizes) for party, count in enumerate(rows_of(rows, parties))]


def facts_of(backend: Backend, parties: Parties, sizes: Mapping[str, int] = SIZES) -> StudyFacts:
    return StudyFacts(sizes, "add-remove", 1, 100_000, bytes(range(32)), backend.leader(parties.computing))


def together(data: Sequence[Data]) -> LocalCounts:
    """The marginals of all custodians of horizontal data."""
    sources = [counts for counts in data if counts is not None]

    def counts(cliques: Sequence[tuple[str, ...]]) -> list[NDArray[np.int64]]:
        each = [source(cliques) for source in sources if callable(source)]
        return [np.sum(tables, axis=0, dtype=np.int64) for tables in zip(*each, strict=True)]

    return counts
