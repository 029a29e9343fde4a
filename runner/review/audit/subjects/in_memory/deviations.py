"""Runs of a backend whose claim holds against a party that deviates, with a message of one party changed; how
the others end.

Such a backend promises more than that cheats are noticed: the honest parties have the results that they would
have had, or stop, and nothing else is opened to them before they do. All coins of a run are fixed, so what
they may open is known; what they put together from parts for a release counts as opened, whether they then go
on with it or not: they have given their own parts away. Every division of data that the backend takes is
tried, by rows and by columns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.backends.replicated.sharing.blame import suspects_of
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.vertical.partition import VerticalData
from runner.review.audit.check import Profile
from runner.review.audit.subjects.ends import STUCK, is_stuck, wrong_end
from runner.review.audit.subjects.in_memory.arena import Arena, Codes, Coins
from runner.review.audit.subjects.in_memory.bent_wire import Bend, Way
from runner.review.audit.subjects.in_memory.openings import Openings, Party
from runner.review.audit.subjects.in_memory.split_columns import split, split_arena
from runner.review.audit.subjects.questions import NO_NOISE, every_kind
from runner.review.audit.subjects.subject import FAR_US, Subject

ROWS, ALONE, NOBODY = 10, 2, 1
"""Of each party where rows are divided; of a common table, that one owner lacks, that nobody holds."""


@dataclass(frozen=True)
class Setting:
    """A backend, a division of data, and what each party brings."""

    words: str
    arena: Arena
    data: Sequence[Codes | VerticalData]
    columns: tuple[str, ...]
    coins: Coins

    def run(self, bend: Bend | None = None, goes_on: bool = False) -> Outcome:
        """Ask every kind of question; how each computing party ended, and what was opened to it. goes_on: see
        `bent`."""
        ends, opened = dict[int, Any](), _Opened()

        def ask(oracle: MarginalOracle) -> list[list[int]]:
            return [each.tolist() for each in every_kind(oracle, self.columns, NO_NOISE, ROWS)[1]]

        lock = threading.Lock()

        def counted(way: Way, number: int, payload: bytes) -> bytes:
            with lock:
                opened.sent[way] = number + 1
            return payload if bend is None else bend(way, number, payload)

        with opened.watched(), suppress(Exception):  # what a party raises is among the ends
            self.arena.run(ask, self.data, self.coins, counted, ends=ends, goes_on=goes_on)
        computing = range(self.arena.computing)
        return Outcome(
            {me: ends.get(me) for me in computing},
            {me: opened.values[me] for me in computing},
            opened.sent,
            opened.last,
        )


@dataclass(frozen=True)
class Outcome:
    """ends: of each computing party, its result or what it raised. opened: to each, in order. ways: messages
    between any two.

    last: of each way, the number of the first message after its sender has begun to open the last release.
    """

    ends: dict[int, Any]
    opened: dict[int, list[list[int]]]
    ways: Mapping[Way, int]
    last: Mapping[Way, int]


class _Opened(Openings):
    """What is opened to each party, by number: the results of releases, and before them the parts put
    together for them.

    sent: how many messages each party has sent to each other. last: of these, before each party began to open
    its last release.
    """

    def __init__(self) -> None:
        self.values: dict[int, list[list[int]]] = {number: [] for number in range(16)}
        self.sent = dict[Way, int]()
        self.last = dict[Way, int]()
        self._watched, self._releasing = set[int](), set[int]()

    def opens(self, party: Party, picks: int) -> None:
        """From now on what it puts together is for a release."""
        me, gates = party.wire.me, party.engine.gates
        if me not in self._watched and hasattr(gates, "opened"):
            gates.opened = self._parts(me, gates.opened)
        self._watched.add(me)
        self._releasing.add(me)
        if not picks:
            self.last.update({way: count for way, count in self.sent.copy().items() if way[0] == me})

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """Keep it."""
        self._releasing.discard(party.wire.me)
        self.values[party.wire.me].append(values)

    def _parts(self, me: int, opened: Callable[..., Any]) -> Callable[..., Any]:
        def put_together(*parts: Any) -> Any:
            found = opened(*parts)
            if me in self._releasing:
                self.values[me].append(found.tolist())
            return found

        return put_together


def settings(subject: Subject) -> list[Setting]:
    """Of every audited backend that offers it, its way against a party that deviates, with every division of
    data it takes."""
    found = []
    for plain in subject.distributed:
        if "malicious" not in plain.securities:
            continue
        backend = plain.secured("malicious")
        assert isinstance(backend, DistributedBackend)
        columns, coins = tuple(subject.sizes), subject.coins("deviations")
        if "horizontal" in backend.partitions:
            arena = subject.arena(backend)
            tables = subject.tables(arena.parties, ROWS)
            found.append(Setting(f"{backend.name}, divided rows", arena, tables, columns, coins))
            if subject.at_least(Profile.DEFAULT):
                far = replace(arena, delay_us=FAR_US)
                found.append(Setting(f"{backend.name}, divided rows, far apart", far, tables, columns, coins))
        if "vertical" in backend.partitions:
            arena = split_arena(subject, backend)
            (rows,) = subject.tables(1, ROWS + 2 * ALONE + NOBODY)
            data = split(subject, rows, ALONE, NOBODY).data(arena.parties)
            found.append(Setting(f"{backend.name}, divided columns", arena, data, columns, coins))
    return found


def flipped(payload: bytes, bit: int) -> bytes:
    """A message with one bit flipped; an empty one as it is."""
    data = bytearray(payload)
    if data:
        data[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(data)


def _added(payload: bytes, bit: int) -> bytes:
    return (np.frombuffer(payload, np.uint8) + np.uint8(1 + bit % 255)).tobytes()


CHANGES: Mapping[str, Callable[[bytes, int, bytes], bytes]] = {
    "a bit flipped": lambda payload, bit, earlier: flipped(payload, bit),
    "two bits flipped": lambda payload, bit, earlier: flipped(
        flipped(payload, bit), bit + 1 + 8 * (len(payload) // 2)
    ),
    "a constant added to all bytes": lambda payload, bit, earlier: _added(payload, bit),
    "an earlier message sent again": lambda payload, bit, earlier: earlier,
}
"""(message, a bit of it, the last one of its length on the same way, or itself with that bit flipped) -> what
is sent instead.

The two bits have different places in numbers: own counts of which one is less and another more by as much may
be those of another table, which a party may bring.
"""


@dataclass
class Deviation:
    """The `number`th message on a way is changed. goes_on: by its sender, which computes with it; else on its
    way."""

    way: Way
    number: int
    bit: int
    goes_on: bool
    change: str

    def __post_init__(self) -> None:
        self._earlier = dict[int, bytes]()

    @property
    def words(self) -> str:
        """In a sentence."""
        return f"message {self.number} of party {self.way[0]} to party {self.way[1]}, {self.change} (bit {self.bit})"

    def bend(self, way: Way, number: int, payload: bytes) -> bytes:
        """What is sent instead."""
        if way != self.way or not payload:
            return payload
        if number == self.number:
            earlier = self._earlier.get(len(payload), flipped(payload, self.bit))
            return CHANGES[self.change](payload, self.bit, earlier)
        self._earlier[len(payload)] = payload
        return payload


def chosen(honest: Outcome, computing: int, rng: np.random.Generator, count: int) -> list[Deviation]:
    """Deviations, each for a run of its own. count: of those that are drawn.

    First what each computing party sends first for the last release, and goes on with: a backend that opens
    before it has looked at what led to it opens something else then. Then any message to one that computes.
    """
    first = next(iter(CHANGES))
    found = [
        Deviation(way, number, 0, True, first)
        for way, number in sorted(honest.last.items())
        if way[1] < computing
    ]
    ways = sorted(way for way in honest.ways if way[1] < computing)
    for case in range(count):
        way = ways[int(rng.integers(len(ways)))]
        number, bit = int(rng.integers(honest.ways[way])), int(rng.integers(1 << 16))
        found.append(Deviation(way, number, bit, bool(case % 2), list(CHANGES)[case // 2 % len(CHANGES)]))
    return found


def judged_outcome(honest: Outcome, outcome: Outcome, cheat: int) -> tuple[str, str | None]:
    """How the honest parties ended, in words, and what is wrong with it."""
    stopped = 0
    for party, end in outcome.ends.items():
        if party == cheat:
            continue
        if (words := wrong_end(end)) is not None:
            return "broken", f"party {party} {words}"
        if isinstance(end, CosynthError):
            if (suspects := suspects_of(end.sentence)) and cheat not in suspects:
                return "blamed others", f"party {party} says of honest ones: {end.sentence}"
            stopped += 1
        elif not _same(end, honest.ends[party]):
            return "another result", f"party {party} ends well with another result"
        seen = outcome.opened[party]
        if seen != honest.opened[party][: len(seen)]:
            return "another opening", f"something else is opened to party {party}"
    if is_stuck(outcome.ends):
        return STUCK, None
    return f"{stopped} stopped" if stopped else "without effect", None


def _same(left: Any, right: Any) -> bool:
    return [list(each) for each in left] == [list(each) for each in right]
