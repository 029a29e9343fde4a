"""Checks of what a party that sends something else brings about: exit code 40 at whoever receives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mpc_protocols.backend import Backend
from mpc_protocols.errors import CosynthError, ProtocolAborted
from mpc_protocols.functionality import MarginalOracle
from runner.review.audit.subjects.in_memory.bent_wire import Way, change
from runner.review.conformance.checks import expect, refusal
from runner.review.conformance.misshapen import Ways, misshapen
from runner.review.conformance.oracle.questions import everything
from runner.review.conformance.oracle.runs import ROWS, SMALL, Parties, data_of, facts_of, run_backend

GARBAGE = (b"", b"{}", b"\x80\x04N.", b'{"step": "end"}', b'{"step":"jump"}', b"[" * 100_000)


def other_study(backend: Backend, parties: Parties) -> None:
    plain = facts_of(backend, parties)
    for follower in range(parties.computing):
        if follower != plain.leader:
            by_party = [plain] * parties.number
            by_party[follower] = replace(plain, row_cap=plain.row_cap - 1)
            with refusal(ProtocolAborted, f"another study at party {follower}"):
                run_backend(backend, everything, data_of(ROWS, parties), parties, by_party)


def _short(oracle: MarginalOracle) -> None:
    """Each kind of step once."""
    handles = oracle.prepare([("a", "b"), ("c",)])
    oracle.measure(handles, SMALL)
    answers = [np.full(12, 9.0), np.full(5, 20.0)]
    oracle.distances(handles, answers, SMALL)
    oracle.select(handles, answers, [Fraction(1)] * 2, [Fraction(0)] * 2, Fraction(1), 2)
    oracle.total(SMALL)


def _ways(backend: Backend, parties: Parties) -> dict[Way, int]:
    """Between which parties messages travel in `_short`, and how many."""
    ways = Ways()
    run_backend(backend, _short, data_of(ROWS, parties), parties, facts_of(backend, parties), tap=ways)
    return ways.counts


def _stops(
    backend: Backend, parties: Parties, way: Way, number: int, how: Callable[[bytes], bytes], words: str
) -> None:
    what = f"message {number} from party {way[0]} to party {way[1]}, {words},"
    data, facts = data_of(ROWS, parties), facts_of(backend, parties)
    with refusal(CosynthError, what) as caught:
        run_backend(backend, _short, data, parties, facts, bend=change(way, number, how))
    expect(
        isinstance(caught[0], ProtocolAborted),
        f"{what} must stop its receiver with exit code 40, not with {caught[0].exit_code} ({caught[0].sentence})",
    )


def bent_messages(backend: Backend, parties: Parties) -> None:
    for way, number, how, words in misshapen(_ways(backend, parties)):
        _stops(backend, parties, way, number, how, words)


def no_steps(backend: Backend, parties: Parties) -> None:
    leader = backend.leader(parties.computing)
    ways = {way: count for way, count in _ways(backend, parties).items() if way[0] == leader}
    for turn, (way, count) in enumerate(sorted(ways.items())):
        for place, junk in enumerate(GARBAGE):
            number = (turn + place * (count // len(GARBAGE))) % count
            _stops(backend, parties, way, number, _always(junk), f"which is {junk[:12]!r},")


def _always(payload: bytes) -> Callable[[bytes], bytes]:
    return lambda sent: payload
