"""Checks of the order in a step: a party's guard is asked before the party computes, not merely before
anything is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from itertools import accumulate
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import Backend, ClearBackend
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.public.history import NoHistory
from runner.review.conformance.checks import expect
from runner.review.conformance.oracle.refusals import WIDE, Log
from runner.review.conformance.oracle.runs import ROWS, SMALL, Parties, data_of, facts_of, run_backend

EVENTS = (1, 1, 1, 1, 1, 3)
"""Of what is asked: a total before each measurement, distances and selection. When its guard is asked about a
total, a party has sent everything of the step before; what follows is small."""
CELLS = WIDE["x"] * WIDE["y"]
"""Of the marginal that all but the total are about: computing with it takes more bytes."""


class _Kept(NoHistory):
    """A party's history, of which nothing is kept but when it was told of results."""

    def __init__(self, log: Log, party: int) -> None:
        self._log, self._party = log, party

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        self._log.note("held", self._party, number)

    def agreed(self, number: int) -> None:
        self._log.note("agreed", self._party, number)

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        self._log.note("learned", self._party, number)


def guards_come_first(backend: Backend, parties: Parties) -> None:
    """By what can be seen of computing: results that are held or known; messages, but for the answers that
    the leader sends; and in the clear, where nothing is sent, random bytes that are taken from the system."""
    log = Log()

    def body(oracle: MarginalOracle) -> None:
        handles = oracle.prepare([("x", "y"), ("x", "z"), ("y", "z"), ("z",)])
        answers = [np.full(cells, 1.0) for cells in (CELLS, 80, 100, 2)]
        log.note("total", -1)
        oracle.total(SMALL)
        log.note("measure", -1)
        oracle.measure(handles[:1], SMALL)
        oracle.total(SMALL)
        log.note("distances", -1)
        oracle.distances(handles, answers, SMALL)
        oracle.total(SMALL)
        log.note("select", -1)
        oracle.select(handles, answers, [Fraction(1)] * 4, [Fraction(0)] * 4, Fraction(1), 3)

    with _noting_randomness(log) if isinstance(backend, ClearBackend) else nullcontext():
        run_backend(
            backend,
            body,
            data_of(ROWS, parties, WIDE),
            parties,
            facts_of(backend, parties, WIDE),
            log.guards(parties, None, 0),
            log.sent,
            histories=[_Kept(log, party) for party in range(parties.computing)],
        )
    entries, leader = log.entries, backend.leader(parties.computing)
    for party in range(parties.computing):
        _results_follow(entries, party, parties.computing)
        for what in ("total", "measure", "distances", "select"):
            before = _before_asking(entries, what, party)
            expect(
                not any(kind == "drawn" for kind, _, _ in before),
                f"the guard must be asked before noise of a {what} is drawn.",
            )
            sent = sum(size for kind, sender, size in before if (kind, sender) == ("sent", party))
            if what == "measure" or (what in ("distances", "select") and party != leader):
                expect(
                    sent < CELLS,
                    f"party {party} sent {sent} bytes of a {what} of {CELLS} cells before its guard was asked.",
                )


def _before_asking(entries: list[tuple[str, int, int]], what: str, party: int) -> list[tuple[str, int, int]]:
    """What happened from a question on until this party's guard was asked about it."""
    rest = entries[entries.index((what, -1, 0)) :]
    return rest[: rest.index(("asked", party, 0))]


def _results_follow(entries: list[tuple[str, int, int]], party: int, computing: int) -> None:
    """A result is held once this party's guard allows all its events, and known once all guards do."""
    steps: dict[int, int] = {}
    due = list(accumulate(EVENTS))
    asked = [0] * computing
    for what, who, number in entries:
        if what == "asked":
            asked[who] += 1
        elif what in ("held", "agreed", "learned") and who == party:
            events = due[steps.setdefault(number, len(steps))]
            must = [party] if what == "held" else range(computing)
            late = [other for other in must if asked[other] < events]
            expect(
                not late,
                f"step {number} was {what} by party {party} before the guard of party {late[:1]} was asked about it.",
            )


@contextmanager
def _noting_randomness(log: Log) -> Iterator[None]:
    """Note whenever somebody takes random bytes from the system, by `os` or by `secrets`."""
    draw = os.urandom

    def noted(size: int) -> bytes:
        log.note("drawn", -1, size)
        return draw(size)

    with (
        mock.patch.object(os, "urandom", noted),
        mock.patch("random._urandom", noted),
    ):  # `secrets` draws by it
        yield
