"""Checks of what must happen before anything is opened: every guard authorises, and one that refuses stops
everybody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.backend import Backend
from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event, MarginalOracle
from mpc_protocols.in_memory.memory_wire import Frame
from runner.review.conformance.checks import expect, refusal
from runner.review.conformance.guards import Recorder
from runner.review.conformance.oracle.runs import ROWS, SMALL, Parties, data_of, facts_of, run_backend

WIDE = {"x": 40, "y": 50, "z": 2}
"""For what must be seen in the number of bytes."""


class Log:
    """What happened in a run, in its order: messages, requests to guards, the leader's marks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.entries: list[tuple[str, int, int]] = []
        """(what, party, bytes)"""

    def note(self, what: str, party: int, size: int = 0) -> None:
        with self._lock:
            self.entries.append((what, party, size))

    def sent(self, frame: Frame) -> None:
        self.note("sent", frame.sender, len(frame.payload))

    def guards(self, parties: Parties, refuser: int | None, allowed: int) -> list[Recorder]:
        """Guards that note what they are asked; the refuser allows so many events."""

        def note_question(party: int) -> Callable[[Event], None]:
            return lambda event: self.note("asked", party)

        return [
            Recorder(allowed if party == refuser else None, note_question(party))
            for party in range(parties.computing)
        ]


def _measures_wide(oracle: MarginalOracle, log: Log, returned: list[Any]) -> None:
    [handle] = oracle.prepare([("x", "y")])
    oracle.total(SMALL)  # everybody has shared by then
    log.note("step", -1)
    returned.append(oracle.measure([handle], SMALL))
    log.note("returned", -1)


def _picks_thrice(oracle: MarginalOracle, log: Log, returned: list[Any]) -> None:
    handles = oracle.prepare([("x",), ("y",), ("z",), ("x", "z")])
    oracle.total(SMALL)
    log.note("step", -1)
    answers = [np.full(size, 3.0) for size in (40, 50, 2, 80)]
    returned.append(oracle.select(handles, answers, [Fraction(1)] * 4, [Fraction(0)] * 4, Fraction(1), 3))
    log.note("returned", -1)


def _stopped(
    backend: Backend,
    parties: Parties,
    refuser: int,
    allowed: int,
    most: int,
    questions: Callable[[MarginalOracle, Log, list[Any]], None],
) -> Log:
    """A run in which one guard allows so many events and refuses the next; no guard may be asked for more
    than `most`."""
    log, returned = Log(), list[Any]()
    guards = log.guards(parties, refuser, allowed)
    with refusal(BudgetRefused, f"a release that the guard of party {refuser} does not authorise"):
        run_backend(
            backend,
            lambda oracle: questions(oracle, log, returned),
            data_of(ROWS, parties, WIDE),
            parties,
            facts_of(backend, parties, WIDE),
            guards,
            log.sent,
        )
    expect(not returned, "the leader must get no answer to a question that a guard refused.")
    expect(guards[refuser].refused == 1, "a guard that has refused must not be asked again.")
    for party, guard in enumerate(guards):
        asked = len(guard.asked) + guard.refused
        expect(
            asked <= most, f"the guard of party {party} was asked {asked} times, for {most} releases at most."
        )
    entries = log.entries
    last = max(place for place, (what, party, _) in enumerate(entries) if (what, party) == ("asked", refuser))
    expect(
        not any(what == "sent" and party == refuser for what, party, _ in entries[last:]),
        f"party {refuser} sent something after its guard had refused.",
    )
    return log


def refuses_measuring(backend: Backend, parties: Parties, refuser: int) -> None:
    log = _stopped(backend, parties, refuser, 1, 2, _measures_wide)
    step, cells = log.entries.index(("step", -1, 0)), WIDE["x"] * WIDE["y"]
    for party in range(parties.number):
        sent = sum(size for what, sender, size in log.entries[step:] if (what, sender) == ("sent", party))
        expect(
            sent < cells, f"party {party} sent {sent} bytes for {cells} cells whose measurement was refused."
        )


def refuses_picking(backend: Backend, parties: Parties, refuser: int) -> None:
    _stopped(backend, parties, refuser, 3, 4, _picks_thrice)


def authorised_before_answered(backend: Backend, parties: Parties) -> None:
    for questions, events in ((_measures_wide, 1), (_picks_thrice, 3)):
        log, returned = Log(), list[Any]()
        run_backend(
            backend,
            lambda oracle, log=log, ask=questions, returned=returned: ask(oracle, log, returned),  # type: ignore[misc]
            data_of(ROWS, parties, WIDE),
            parties,
            facts_of(backend, parties, WIDE),
            log.guards(parties, None, 0),
            log.sent,
        )
        before = log.entries[: log.entries.index(("returned", -1, 0))]
        for party in range(parties.computing):
            asked = before.count(("asked", party, 0))
            expect(
                asked == 1 + events,
                f"the guard of party {party} must have been asked for {1 + events} releases before the leader has the last "
                f"answer, and was for {asked}.",
            )
