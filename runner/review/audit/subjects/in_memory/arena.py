"""Runs of a backend in memory that can be repeated bit for bit: every key, coin and message of every party is
known here.

The protocol code is that of a deployment; only the wire is `memory_wire`. What an audit varies is the
randomness: `Coins` derives each party's own coins and each key from names and a label, so that a run can be
repeated with everything that ONE party lacks drawn afresh (`views`). Such coins protect nobody; they exist in
this folder alone, while an audit runs.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import ClearBackend, DistributedBackend
from mpc_protocols.engine import latency
from mpc_protocols.functionality import (
    Clique,
    Event,
    Guard,
    InputRule,
    LocalCounts,
    MarginalOracle,
    StudyFacts,
)
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.ends import noting
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent

Script = Callable[[MarginalOracle], Any]
"""What the leader asks; what it returns is the run's answer."""
Codes = NDArray[np.int64]
"""One custodian's rows: shape (rows, columns), codes in the order of the study's columns."""
PATIENCE_S = 180.0
SESSION = hashlib.sha256(b"cosynth audit").digest()


@dataclass
class Recorder(Guard):
    """A computing party's guard that allows everything and notes what it was asked."""

    events: list[Event] = field(default_factory=list)

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Note the event."""
        self.events.append(event)


@dataclass(frozen=True)
class Ran:
    """What a run left. answer: of the script. events: what each computing party authorised, in order. frames:
    every message.

    results: of each party's part; of a follower, the noisy counts that were opened to it.
    lines: what each computing party's observer and the program's loggers were told, in order.
    """

    answer: Any
    events: tuple[tuple[Event, ...], ...]
    frames: tuple[Frame, ...]
    lines: tuple[tuple[str, ...], ...]
    results: tuple[Any, ...]

    def view(self, party: int) -> list[Frame]:
        """What a party received, in an order that does not depend on the scheduling of threads."""
        return ordered_view(self.frames, party)


def ordered_view(frames: Sequence[Frame], party: int) -> list[Frame]:
    """The messages to a party, by stream, sender and number."""
    numbered: Counter[tuple[str, int]] = Counter()
    keyed = []
    for frame in frames:
        if frame.receiver == party:
            place = frame.stream, frame.sender
            keyed.append(((*place, numbered[place]), frame))
            numbered[place] += 1
    return [frame for _, frame in sorted(keyed, key=lambda each: each[0])]


@dataclass(frozen=True)
class Coins:
    """The randomness of a run. fresh: what is drawn anew replaces what it was, for all that party `kept`
    cannot know."""

    label: str = "audit"
    kept: int | None = None
    fresh: int = 0

    def _named(self, known: bool, *name: object) -> bytes:
        drawn = 0 if known else self.fresh
        return hashlib.sha256(repr((self.label, drawn, *name)).encode()).digest()

    def key(self, members: Sequence[int]) -> bytes:
        """The 32 bytes that these parties share."""
        return self._named(self.kept is None or self.kept in members, "key", sorted(members))

    def give_keys(self, network: MemoryNetwork) -> None:
        """Let the parties of a network share these keys."""
        network._keys = {pair: self.key(sorted(pair)) for pair in network._keys}
        network._set_keys = {members: self.key(members) for members in network._set_keys}

    def stream(self, party: int) -> Callable[[int], bytes]:
        """A party's own coins, in the order in which it draws them."""
        drawn = iter(range(1 << 62))

        def draw(count: int) -> bytes:
            known = self.kept is None or self.kept == party
            return hashlib.shake_256(self._named(known, "coins", party, next(drawn))).digest(count)

        return draw


@contextmanager
def drawing(coins: Coins | None, parties: int) -> Iterator[None]:
    """`secrets` gives each party's threads its coins; a thread of nobody keeps the system's."""
    if coins is None:
        yield
        return
    system, streams = secrets.token_bytes, [coins.stream(party) for party in range(parties)]

    def token_bytes(count: int | None = None) -> bytes:
        party = _party_of_thread()
        return system(count) if party is None else streams[party](32 if count is None else count)

    def randbits(count: int) -> int:
        return int.from_bytes(token_bytes(-(-count // 8)), "big") >> -count % 8

    def randbelow(bound: int) -> int:
        while (value := randbits(bound.bit_length())) >= bound:
            pass
        return value

    with mock.patch.multiple(secrets, token_bytes=token_bytes, randbits=randbits, randbelow=randbelow):
        yield


class _Lines(logging.Handler):
    """Keeps the lines of each party's threads."""

    def __init__(self, told: Sequence[list[str]]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = told

    def emit(self, record: logging.LogRecord) -> None:
        if (party := _party_of_thread()) is not None:
            self._lines[party].append(record.getMessage())


@contextmanager
def _logged(told: Sequence[list[str]]) -> Iterator[None]:
    """Whatever is logged while the block runs, at any level."""
    handler, root = _Lines(told), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


@contextmanager
def apart(delay_us: int) -> Iterator[None]:
    """The parties send what they send to measure their distance, and the leader takes so much for measured: how
    fast this machine is at the moment decides nothing."""
    measure = latency._measure

    def measured(*given: Any) -> int:
        measure(*given)
        return delay_us

    with mock.patch.object(latency, "_measure", measured):
        yield


def _party_of_thread() -> int | None:
    """Whose thread this is: `memory_wire` names a party's thread, `interleave` the one beside it after that."""
    named = re.match(r"party-(\d+)(-|$)", threading.current_thread().name)
    return int(named[1]) if named else None


@dataclass(frozen=True)
class Arena:
    """Parties of one backend, and the public facts of what they compute on. contributing: custodians that do
    not compute. delay_us: one way, between those that do; far ones take other forms of the same protocols."""

    backend: DistributedBackend
    facts: StudyFacts
    computing: int
    contributing: int
    delay_us: int = 0

    @classmethod
    def of(
        cls, backend: DistributedBackend, sizes: Mapping[str, int], contributing: int = 1, **facts: Any
    ) -> Arena:
        """The fewest parties that the backend takes. facts: fields of `StudyFacts` other than the usual ones."""
        computing = max(backend.computing[0], 1)
        usual: dict[str, Any] = {
            "adjacency": "add-remove",
            "unit_rows": 1,
            "row_cap": 100_000,
            "session": SESSION,
            "leader": backend.leader(computing),
        }
        if not backend.unchecked:
            usual["inputs"] = InputRule({**usual, **facts}["row_cap"])
        return cls(backend, StudyFacts(sizes, **{**usual, **facts}), computing, contributing)

    @property
    def parties(self) -> int:
        """All of them."""
        return self.computing + self.contributing

    def run(
        self,
        script: Script,
        rows: Sequence[Codes | VerticalData],
        coins: Coins | None = None,
        bend: Bend | None = None,
        histories: Sequence[History] = (),
        session: bytes | None = None,
        ends: dict[int, Any] | None = None,
        goes_on: bool = False,
    ) -> Ran:
        """Run the script at the leader. Raises what the first party to fail raised.

        rows: of each party; `VerticalData` where columns are split. coins: None for the system's. bend: what
        is sent instead of a message. histories: of the computing parties, if the run is to be resumed.
        session: of the wires, 32 bytes, if not that of the facts. ends: takes each party's result, or what it
        raised. goes_on: see `bent`.
        """
        frames: list[Frame] = []
        lock = threading.Lock()

        def tap(frame: Frame) -> None:
            with lock:
                frames.append(frame)

        network = MemoryNetwork(
            self.parties,
            self.computing,
            session_id=self.facts.session if session is None else session,
            tap=tap,
            patience_s=PATIENCE_S,
        )
        if coins is not None:
            coins = replace(coins, label=f"{coins.label} {self.backend.name}")
            coins.give_keys(network)
        guards = [Recorder() for _ in range(self.computing)]
        told: list[list[str]] = [[] for _ in range(self.parties)]

        def part(plain: Wire) -> Any:
            wire = bent(plain, bend, goes_on)
            own, guard = rows[wire.me], self._guard(guards, wire.me)
            data = own if isinstance(own, VerticalData) else counter(own, self.facts.sizes)

            def observe(phase: str, event: str, **fields: object) -> None:
                told[wire.me].append(f"{phase} {event} {fields}")

            history = histories[wire.me] if wire.me < len(histories) else NO_HISTORY
            if wire.me == self.facts.leader:
                with self.backend.lead(wire, self.facts, data, guard, observe, history) as oracle:
                    return script(oracle)
            if wire.me < self.computing:
                return self.backend.follow(wire, self.facts, data, guard, observe, history)
            return self.backend.contribute(wire, self.facts, data)

        with apart(self.delay_us), drawing(coins, self.parties), _logged(told):
            results = network.run([noting(part, ends)] * self.parties)
        return Ran(
            results[self.facts.leader],
            tuple(tuple(guard.events) for guard in guards),
            tuple(frames),
            tuple(map(tuple, told)),
            tuple(results),
        )

    @staticmethod
    def _guard(guards: Sequence[Recorder], party: int) -> Guard:
        return guards[party] if party < len(guards) else AllowAll()


def clear(
    backend: ClearBackend, facts: StudyFacts, rows: Sequence[Codes], script: Script
) -> tuple[Any, tuple[Event, ...]]:
    """The script's answer of a backend in the clear, and what was authorised."""
    guard = Recorder()
    oracle = backend.oracle(facts, counter(np.concatenate(rows), facts.sizes), guard)
    return script(oracle), tuple(guard.events)


def counter(rows: Codes, sizes: Mapping[str, int]) -> LocalCounts:
    """The marginals of rows of codes, one column for each of `sizes`."""
    names = list(sizes)

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        found = []
        for clique in cliques:
            shape = tuple(sizes[name] for name in clique)
            cells = np.ravel_multi_index(tuple(rows[:, names.index(name)] for name in clique), shape)
            found.append(np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64))
        return found

    return counts
