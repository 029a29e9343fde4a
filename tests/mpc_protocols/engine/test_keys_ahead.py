"""Noise of keys that is drawn beside the counts before a selection: the same answers in fewer rounds, at every
backend."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.engine.latency import latency_bytes_of
from mpc_protocols.engine.noise import pools, sampling
from mpc_protocols.engine.noise.pool import GUMBEL_ROWS
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import MarginalOracle
from runner.review.audit.subjects.in_memory.arena import Arena, Coins
from runner.review.audit.subjects.in_memory.streams import Streams

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
NOISE = Fraction(1, 64)
NAMES = [backend.name for backend in BACKENDS if isinstance(backend, DistributedBackend)]


def script(oracle: MarginalOracle, expected: int, first_total: bool) -> list[int]:
    """Two selections of b with c, whose weight is large, after counts or the number of rows."""
    oracle.expect_keys(expected)
    if first_total:
        oracle.total(NOISE)
    else:
        oracle.measure(oracle.prepare([("a",)]), NOISE)
    handles = oracle.prepare(PAIRS)
    answers = [np.full(oracle.facts.cells(pair), 1.0) for pair in PAIRS]
    weights, free = [Fraction(50 if number == 1 else 1) for number in range(3)], [Fraction(0)] * 3
    return [oracle.select(handles, answers, weights, free, Fraction(20))[0] for _ in range(2)]


@pytest.mark.parametrize("first_total", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delay_us", [0, 20_000])
def test_the_first_selection_waits_for_no_noise(
    monkeypatch: pytest.MonkeyPatch, delay_us: int, name: str, first_total: bool
) -> None:
    """Far apart, too, where protocols have other forms: no stream is begun twice in these either."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda _: latency_bytes_of(delay_us))
    backend = BACKENDS[name]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    rows = [np.stack([np.arange(48) % size for size in SIZES.values()], axis=1)] * arena.parties
    rounds = []
    for expected in (0, 6):
        streams = Streams()
        with streams.watched():
            ran = arena.run(partial(script, expected=expected, first_total=first_total), rows, Coins("keys"))
        assert not streams.twice()
        assert ran.answer == [1, 1]
        rounds.append(max(of.clock for of in ran.frames))
    assert rounds[1] <= rounds[0] - 5


@pytest.mark.parametrize("name", NAMES)
def test_parties_that_are_told_to_expect_other_keys_open_nothing(name: str) -> None:
    """They would draw other rows, and misread each other from then on."""
    backend = BACKENDS[name]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    rows = [np.stack([np.arange(48) % size for size in SIZES.values()], axis=1)] * arena.parties
    told, lied = b'"keys":6', list[int]()
    last = max(set(range(arena.computing)) - {arena.facts.leader})

    def bend(way: tuple[int, int], number: int, payload: bytes) -> bytes:
        if way != (arena.facts.leader, last) or told not in payload:
            return payload
        lied.append(number)
        return payload.replace(told, b'"keys":7')

    with pytest.raises(ProtocolAborted, match="has seen other public inputs"):
        arena.run(partial(script, expected=6, first_total=False), rows, Coins("keys"), bend)
    assert len(lied) == 1


def test_what_one_step_makes_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what a party keeps, whatever the leader expects."""
    made, draw = list[int](), sampling.gumbel_values

    def noted(gates: Any, source: Any, count: int) -> Any:
        made.append(count)
        return draw(gates, source, count)

    monkeypatch.setattr(pools, "gumbel_values", noted)
    backend = BACKENDS["replicated"]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    rows = [np.stack([np.arange(48) % size for size in SIZES.values()], axis=1)] * arena.parties
    arena.run(partial(script, expected=1 << 70, first_total=True), rows, Coins("keys"))
    assert made == [GUMBEL_ROWS] * arena.computing
