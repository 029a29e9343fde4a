"""A measurement that a selection promises: nobody sends it, all begin it, nothing else comes in its place; at
every backend."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import MarginalOracle
from runner.review.audit.subjects.in_memory.arena import Arena, Coins

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
NOISE = Fraction(1, 64)
NAMES = [backend.name for backend in BACKENDS if isinstance(backend, DistributedBackend)]


def _arena(name: str) -> tuple[Arena, list[np.ndarray]]:
    backend = BACKENDS[name]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    return arena, [np.stack([np.arange(48) % size for size in SIZES.values()], axis=1)] * arena.parties


def _selected(oracle: MarginalOracle, promised: bool) -> tuple[list[int], int]:
    """All handles, and the one that is picked: b with c, whose weight is large."""
    handles = oracle.prepare(PAIRS)
    oracle.total(NOISE)
    answers = [np.full(oracle.facts.cells(pair), 1.0) for pair in PAIRS]
    oracle.expect(NOISE, promised=promised)
    weights = [Fraction(50 if number == 1 else 1) for number in range(3)]
    [picked] = oracle.select(handles, answers, weights, [Fraction(0)] * 3, Fraction(20))
    return handles, handles[picked]


@pytest.mark.parametrize("name", NAMES)
def test_a_promised_measurement_is_made_without_being_sent(name: str) -> None:
    def script(oracle: MarginalOracle, promised: bool) -> list[int]:
        handles, picked = _selected(oracle, promised)
        oracle.expect_keys(1)  # too late for a measurement that is promised
        [counts] = oracle.measure([picked], NOISE)
        oracle.measure(handles[:1], NOISE)
        return [picked, int(counts.sum())]

    arena, rows = _arena(name)
    sent, rounds = [], []
    for promised in (False, True):
        ran = arena.run(partial(script, promised=promised), rows, Coins("promise"))
        assert ran.answer == [1, 48 * arena.parties]
        steps = [of for of in ran.frames if b'"step":"measure"' in bytes(of.payload)]
        sent.append(len(steps))
        rounds.append(max(of.clock for of in ran.frames))
    assert sent == [2 * (arena.computing - 1), arena.computing - 1]
    assert rounds[1] <= rounds[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_promise_that_is_broken_ends_the_run(name: str) -> None:
    arena, rows = _arena(name)

    def script(oracle: MarginalOracle) -> None:
        _, picked = _selected(oracle, True)
        oracle.measure([picked], NOISE * 2)

    with pytest.raises(ProtocolAborted, match="in place of the measurement"):
        arena.run(script, rows, Coins("promise"))
