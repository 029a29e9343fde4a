"""Agreements beside what is computed: who announces something else is found before anything is opened, at
every backend."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.engine import by_shape
from mpc_protocols.engine.agreement import Confirm, announce, at_first_turn
from mpc_protocols.engine.bitwise import argmax
from mpc_protocols.engine.inputs import sourced_engine
from mpc_protocols.engine.interleave import alone
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.arena import Arena, Coins

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]


def selection(oracle: MarginalOracle) -> list[int]:
    handles = oracle.prepare(PAIRS)
    oracle.total(Fraction(1, 64))
    answers = [np.full(oracle.facts.cells(pair), 5.0) for pair in PAIRS]
    return oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1, 10))


@pytest.mark.parametrize(
    "name", [backend.name for backend in BACKENDS if isinstance(backend, DistributedBackend)]
)
def test_nothing_is_opened_before_all_hold_their_shares(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last but one agreement of a run that ends with a selection is the one that lets it open."""
    backend = BACKENDS[name]
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, SIZES, adjacency="add-remove", unit_rows=1, row_cap=1000)
    rows = [np.stack([np.arange(40) % size for size in SIZES.values()], axis=1)] * arena.parties
    cheat = 0
    announced: list[int] = []
    opening: set[int] = set()
    lie: int | None = None
    opens: Callable[..., Any] = argmax._open_winners

    def told(stream: Wire, value: bytes) -> Confirm:
        if stream.me != cheat:
            return announce(stream, value)
        announced.append(len(value))
        if len(announced) - 1 != lie:
            return announce(stream, value)
        announce(stream, bytes(len(value)))  # and goes on
        return lambda: None

    def noted(gates: Any, *given: Any) -> Any:
        opening.add(id(gates))
        return opens(gates, *given)

    monkeypatch.setattr(sourced_engine, "announce", told)
    monkeypatch.setattr(argmax, "_open_winners", noted)
    arena.run(selection, rows, Coins("agreement"))
    assert len(opening) == arena.computing
    count = len(announced)
    for lie in (count - 3, count - 2):  # authorised; held
        announced.clear()
        opening.clear()
        with pytest.raises(ProtocolAborted, match="has seen other public inputs"):
            arena.run(selection, rows, Coins("agreement"))
        assert len(opening) <= 1, lie  # the liar's own


class Gates:
    """Gates that do nothing but give way."""

    def __init__(self) -> None:
        self.turn: Callable[[], None] = alone


def test_what_is_to_run_runs_once_at_the_first_turn_or_at_the_end() -> None:
    gates, seen = Gates(), list[str]()
    with at_first_turn(gates, lambda: seen.append("agreed")):
        seen.append("sent")
        gates.turn()
        seen.append("received")
        gates.turn()
    assert seen == ["sent", "agreed", "received"] and gates.turn is alone
    with at_first_turn(gates, lambda: seen.append("silent")):
        pass
    assert seen[-1] == "silent"
    with pytest.raises(ZeroDivisionError), at_first_turn(gates, lambda: seen.append("never")):
        _ = 1 / 0
    assert "never" not in seen and gates.turn is alone


def test_an_agreement_is_no_part_of_the_protocol_that_is_noted_meanwhile() -> None:
    """A dry run that repeats the protocol's messages must not repeat an agreement with them."""
    gates = Gates()
    messages = by_shape.Messages()

    def protocol() -> None:
        by_shape.note(lambda of: None)
        gates.turn()

    with at_first_turn(gates, lambda: by_shape.note(lambda of: pytest.fail("repeated"))):
        messages.of(gates, "key", protocol)
    messages.of(gates, "key", protocol)


def test_all_hear_who_announces_something_else() -> None:
    network = MemoryNetwork(3)

    def party(wire: Wire) -> int | None:
        return announce(wire.fork("agree"), bytes([wire.me == 2] * 32))()

    assert network.run([party] * 3) == [2, 2, 0]


@pytest.mark.parametrize(
    "name", [backend.name for backend in BACKENDS if isinstance(backend, DistributedBackend)]
)
def test_one_exchange_at_most_leaves_before_all_have_authorised_a_selection(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the scores take no message, since all answers are 0, and only the noise beside them does."""
    backend, sizes = BACKENDS[name], {"a": 3, "b": 4, "c": 5}
    assert isinstance(backend, DistributedBackend)
    arena = Arena.of(backend, sizes, adjacency="add-remove", unit_rows=1, row_cap=1000)
    rows = [np.stack([np.arange(40) % size for size in sizes.values()], axis=1)] * arena.parties
    heard: dict[int, int] = {}
    asked: list[str] = []

    def told(stream: Wire, value: bytes) -> Confirm:
        confirm, before = announce(stream, value), stream.traffic().rounds

        def confirmed() -> int | None:
            if asked and stream.me not in heard:
                heard[stream.me] = stream.traffic().rounds - before
            return confirm()

        return confirmed

    def script(oracle: MarginalOracle) -> list[int]:
        handles = oracle.prepare(PAIRS)
        oracle.total(Fraction(1, 64))
        asked.append("selection")
        answers = [np.zeros(oracle.facts.cells(pair)) for pair in PAIRS]
        return oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1, 10))

    monkeypatch.setattr(sourced_engine, "announce", told)
    arena.run(script, rows, Coins("agreement"))
    assert sorted(heard) == list(range(arena.computing))
    assert max(heard.values()) <= 1, heard
