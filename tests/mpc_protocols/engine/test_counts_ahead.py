"""Noise of a measurement that the measurement before it begins: the same answers in fewer rounds, at every backend."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.backends.paillier.backend import Paillier
from mpc_protocols.engine.latency import latency_bytes_of
from mpc_protocols.engine.noise import pools, sampling
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.public.steps import MAX_COUNTS
from runner.review.audit.subjects.in_memory.arena import Arena, Coins
from runner.review.audit.subjects.in_memory.streams import Streams

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
CELLS = [6, 12, 8]
NOISE = [Fraction(1, 64 - number) for number in range(6)]
"""So little that a draw is 0, but for one of 10^13; each a kind of its own."""
FREE = [Fraction(0)] * 3
SHORT_KEYS = Paillier(1024)
NAMES = [backend.name for backend in BACKENDS if isinstance(backend, DistributedBackend)]
Told = Sequence[tuple[Fraction, int]]


def measured(oracle: MarginalOracle, handles: Sequence[int], sigma2: Any, told: Told) -> list[NDArray[Any]]:
    """A measurement before which these are told."""
    for of, counts in told:
        oracle.expect_counts(of, counts)
    return oracle.measure(handles, sigma2)


def picked(oracle: MarginalOracle, handles: Sequence[int], expected: Fraction) -> list[int]:
    """A selection of b with c, whose weight is large."""
    oracle.expect(expected)
    answers = [np.full(cells, 1.0) for cells in CELLS]
    weights = [Fraction(50 if number == 1 else 1) for number in range(3)]
    return oracle.select(handles, answers, weights, FREE, Fraction(20))


def script(oracle: MarginalOracle, told: Callable[[Told], Told]) -> list[list[int]]:
    """Columns of two noises; then batches of which each has another noise, and the last one of three."""
    columns = oracle.prepare([("a",), ("b",)])
    oracle.expect_keys(12)
    found = measured(oracle, columns, NOISE[:2], told([(NOISE[2], 12)]))
    handles = oracle.prepare(PAIRS)
    after: list[tuple[Fraction, Told]] = [
        (NOISE[2], [(NOISE[3], 12)]),
        (NOISE[3], [(NOISE[4], 12), (NOISE[5], 12)]),
        (NOISE[5], []),
    ]
    for sigma2, following in after:
        [pick] = picked(oracle, handles, NOISE[4] if sigma2 == NOISE[5] else sigma2)
        found += measured(oracle, [handles[pick]], sigma2, told(following))
    return [counts.tolist() for counts in found]


def arena_of(name: str) -> tuple[Arena, list[NDArray[np.int64]]]:
    backend = SHORT_KEYS if name == "paillier" else BACKENDS[name]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    return arena, [np.stack([np.arange(48) % size for size in SIZES.values()], axis=1)] * arena.parties


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delay_us", [0, 20_000])
def test_what_is_told_early_costs_no_round(monkeypatch: pytest.MonkeyPatch, delay_us: int, name: str) -> None:
    """And no stream is begun twice, though one making goes on beside a measurement and a selection. What is not told
    is made where it is needed, the last time in rounds of its own."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda _: latency_bytes_of(delay_us))
    arena, rows = arena_of(name)
    rounds, answers = [], []
    forms: list[Callable[[Told], Told]] = [lambda following: [], lambda following: following]
    for told in forms:
        streams = Streams()
        with streams.watched():
            ran = arena.run(partial(script, told=told), rows, Coins("counts"))
        assert not streams.twice()
        answers.append(ran.answer)
        rounds.append(max(of.clock for of in ran.frames))
    each = 4 * len(rows) * np.ones(12, int)
    assert answers[0] == answers[1] and answers[0][2] == each.tolist()
    assert rounds[1] <= rounds[0] - 8


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("after", ["end", "total", "distances", "one candidate"])
def test_what_is_under_way_is_finished_whatever_follows(name: str, after: str) -> None:
    """No message of it is left unread, and none of its rows is opened by what was not told."""

    def body(oracle: MarginalOracle) -> list[int]:
        handles = oracle.prepare(PAIRS)
        [first] = measured(oracle, handles[:1], NOISE[0], [(NOISE[0], 6)])
        picked(oracle, handles, NOISE[0])
        measured(oracle, handles[1:2], NOISE[0], [(NOISE[1], 6)])  # some of it is there, some is made
        measured(oracle, handles[2:], NOISE[0], [(NOISE[2], 6)])
        if after == "total":
            return [oracle.total(NOISE[3])]
        if after == "distances":
            return oracle.distances(handles[:1], [np.zeros(6)], NOISE[4]).tolist()
        if after == "one candidate":
            oracle.select(handles[:1], [np.zeros(6)], [Fraction(1)], FREE[:1], Fraction(20))
            return measured(oracle, handles[:1], NOISE[2], [])[0].tolist()
        return first.tolist()

    arena, rows = arena_of(name)
    streams = Streams()
    with streams.watched():
        ran = arena.run(body, rows, Coins("counts"))
    assert not streams.twice()
    people = 48 * len(rows)
    assert ran.answer == ([people] if after in ("total", "distances") else [people // 6] * 6)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_fails_leaves_nothing_under_way(name: str) -> None:
    """What a measurement has begun ends with the run: no thread of it waits for a turn that nobody gives."""

    def body(oracle: MarginalOracle) -> None:
        measured(oracle, oracle.prepare(PAIRS)[:1], NOISE[0], [(NOISE[1], 12)])
        begun.extend(of for of in threading.enumerate() if of.name.endswith("-beside"))
        raise ProtocolAborted("It ends here.")

    begun: list[threading.Thread] = []
    arena, rows = arena_of(name)
    with pytest.raises(ProtocolAborted):
        arena.run(body, rows, Coins("counts"))
    gc.collect()
    assert begun and not any(of.is_alive() for of in begun)


@pytest.mark.parametrize("name", NAMES)
def test_parties_that_are_told_to_expect_other_counts_open_nothing(name: str) -> None:
    """They would draw other rows, and misread each other from then on."""
    arena, rows = arena_of(name)
    told, lied = b'"expected":[[[1,62],12]]', list[int]()
    last = max(set(range(arena.computing)) - {arena.facts.leader})

    def bend(way: tuple[int, int], number: int, payload: bytes) -> bytes:
        if way != (arena.facts.leader, last) or told not in payload:
            return payload
        lied.append(number)
        return payload.replace(told, b'"expected":[[[1,62],13]]')

    with pytest.raises(ProtocolAborted, match="has seen other public inputs"):
        arena.run(partial(script, told=lambda following: following), rows, Coins("counts"), bend)
    assert len(lied) == 1


@pytest.mark.parametrize(
    ("told", "ahead"),
    [
        ([(NOISE[2], 1 << 70)], MAX_COUNTS + MAX_COUNTS // pools.SPARE),  # no more than a party keeps
        (
            [(NOISE[2], 12), (NOISE[3], 9)],
            12 + 9,
        ),  # not again beside the opening, nor when one of them is measured with
    ],
)
def test_what_one_measurement_makes_ahead_is_bounded_and_made_once(
    monkeypatch: pytest.MonkeyPatch, told: Told, ahead: int
) -> None:
    made, draw = list[int](), sampling.gaussian_noises

    def noted(gates: Any, source: Any, runs: Any, ring: Any) -> Any:
        made.append(sum(count for _, count in runs))
        return draw(gates, source, runs, ring)

    monkeypatch.setattr(pools, "gaussian_noises", noted)
    arena, rows = arena_of("replicated")

    def body(oracle: MarginalOracle) -> None:
        columns = oracle.prepare([("a",), ("b",)])
        measured(oracle, columns, NOISE[:2], told)
        oracle.measure(columns[:1], told[-1][0])

    arena.run(body, rows, Coins("counts"))
    assert made == [5 + ahead] * arena.computing
