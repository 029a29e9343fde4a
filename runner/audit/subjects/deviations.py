"""Runs of a backend whose claim holds against a party that deviates, with a message of one party changed; how the others end.

Such a backend promises more than that cheats are noticed: the honest parties have the results that they would have had, or stop,
and nothing else is opened to them before they do. All coins of a run are fixed, so what they may open is known. Every division of
data that the backend takes is tried, by rows and by columns.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from unittest import mock

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.partition import VerticalData
from mpc_protocols.replicated.proved.gates import ProvedGates
from runner.audit.subjects.arena import Arena, Codes, Coins
from runner.audit.subjects.bent_wire import Bend, Way
from runner.audit.subjects.openings import Openings, Party
from runner.audit.subjects.questions import NO_NOISE, every_kind
from runner.audit.subjects.split_columns import split, split_arena
from runner.audit.subjects.subject import Subject

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

    def run(self, bend: Bend | None = None) -> Outcome:
        """Ask every kind of question; how each computing party ended, and what was opened to it."""
        ends, opened = dict[int, Any](), _Opened()

        def ask(oracle: MarginalOracle) -> list[list[int]]:
            return [each.tolist() for each in every_kind(oracle, self.columns, NO_NOISE, ROWS)[1]]

        ways = Counter[Way]()
        lock = threading.Lock()

        def counted(way: Way, number: int, payload: bytes) -> bytes:
            with lock:
                ways[way] += bool(payload)
            return payload if bend is None else bend(way, number, payload)

        with opened.watched(), suppress(Exception):  # what a party raises is among the ends
            self.arena.run(ask, self.data, self.coins, counted, ends=ends)
        computing = range(self.arena.computing)
        return Outcome(
            {me: ends.get(me) for me in computing}, {me: opened.values[me] for me in computing}, ways
        )


@dataclass(frozen=True)
class Outcome:
    """ends: of each computing party, its result or what it raised. opened: to each, in order. ways: messages between any two."""

    ends: dict[int, Any]
    opened: dict[int, list[list[int]]]
    ways: Counter[Way]


class _Opened(Openings):
    """What is opened to each party, by number: also to one that stops before it has a result of it."""

    def __init__(self) -> None:
        self.values: dict[int, list[list[int]]] = {number: [] for number in range(16)}

    @contextmanager
    def watched(self) -> Iterator[None]:
        plain = ProvedGates.opened

        def opened(gates: ProvedGates, *held: Any) -> Any:
            found = plain(gates, *held)
            self.values[gates.trio.me].append(found.tolist())
            return found

        with super().watched(), mock.patch.object(ProvedGates, "opened", opened):
            yield

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """Keep it."""
        self.values[party.wire.me].append(values)


def settings(subject: Subject) -> list[Setting]:
    """Of every audited backend that offers it, its way against a party that deviates, with every division of data it takes."""
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
        if "vertical" in backend.partitions:
            arena = split_arena(subject, backend)
            (rows,) = subject.tables(1, ROWS + 2 * ALONE + NOBODY)
            data = split(subject, rows, ALONE, NOBODY).data(arena.parties)
            found.append(Setting(f"{backend.name}, divided columns", arena, data, columns, coins))
    return found


def judged_outcome(honest: Outcome, outcome: Outcome, cheat: int) -> tuple[str, str | None]:
    """How the honest parties ended, in words, and what is wrong with it."""
    stopped = 0
    for party, end in outcome.ends.items():
        if party == cheat:
            continue
        if isinstance(end, CosynthError):
            if end.exit_code not in (40, 41):
                return "broken", f"party {party} ends with {end.exit_code} ({end.sentence})"
            stopped += 1
        elif isinstance(end, BaseException):
            return "broken", f"party {party} ends in {type(end).__name__}"
        elif not _same(end, honest.ends[party]):
            return "another result", f"party {party} ends well with another result"
        seen = outcome.opened[party]
        if seen != honest.opened[party][: len(seen)]:
            return "another opening", f"something else is opened to party {party}"
    return f"{stopped} stopped" if stopped else "without effect", None


def _same(left: Any, right: Any) -> bool:
    return [list(each) for each in left] == [list(each) for each in right]
