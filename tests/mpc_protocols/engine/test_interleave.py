"""Two protocols in the same rounds: results, rounds and bytes as predicted, errors of either, always the same
order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.gates import TrioGates
from mpc_protocols.backends.replicated.sharing.ring import RingShare, multiply, reshare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise import adders
from mpc_protocols.engine.interleave import Underway, interleave
from mpc_protocols.engine.noise import sampling
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame
from tests.mpc_protocols.backends.replicated.test_costs import counters
from tests.mpc_protocols.backends.replicated.trio_run import blanks, deal_ring, distances, run_trio, total

VALUES = np.random.default_rng(0).integers(-1000, 1000, 300)


def products(count: int) -> Callable[[Trio, RingShare], RingShare]:
    def run(trio: Trio, x: RingShare) -> RingShare:
        for _ in range(count):
            x = multiply(trio, x, x)
        return x

    return run


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 3), (3, 0), (1, 1), (2, 5), (5, 2)])
def test_rounds_are_those_of_the_longer(first: int, second: int) -> None:
    x = np.arange(5, dtype=np.uint32)
    shares = deal_ring(x, np.random.default_rng(1))

    def body(trio: Trio) -> tuple[RingShare, RingShare]:
        other = trio.fork("beside")
        mine = shares[trio.me]
        return interleave(
            trio, lambda: products(first)(trio, mine), other, lambda: products(second)(other, mine)
        )

    results, traffic = run_trio(body)
    for position, count in enumerate((first, second)):
        np.testing.assert_array_equal(total([result[position] for result in results]), x ** (1 << count))
    assert {t.rounds for t in traffic} == {max(first, second)}


BESIDE: dict[adders.Adder, tuple[list[int], list[int], list[int]]] = {
    "ripple": ([15, 15, 15], [5152, 5152, 5152], [30, 30, 30]),
    "tree": ([15, 15, 15], [5520, 5520, 5520], [24, 24, 24]),
}
"""Rounds, bytes and messages of the three."""


@pytest.mark.parametrize("adder", ["ripple", "tree"])
def test_noise_beside_scores(adder: adders.Adder) -> None:
    """Uneven steps: some parties only send, only receive, or do neither; the counters are derived exactly,
    ten times."""
    shares = deal_ring(VALUES.astype(np.uint32), np.random.default_rng(1))

    def body(trio: Trio, shares: list[RingShare] = shares) -> tuple[RingShare, RingShare]:
        other = trio.fork("beside")
        return interleave(
            trio,
            lambda: distances(trio, shares[trio.me], np.array([100, 200]), 12, adder),
            other,
            lambda: sampling.gumbel_noise(
                TrioGates(other), TrioGates(other).release_bits(b"r"), 20, 3, np.uint32
            ),
        )

    _, derived = run_trio(lambda trio: body(trio, blanks(shares)), network=BlankNetwork(3))
    for _ in range(10):
        results, traffic = run_trio(body)
        np.testing.assert_array_equal(
            total([result[0] for result in results]), [np.abs(VALUES[:100]).sum(), np.abs(VALUES[100:]).sum()]
        )
        assert traffic == derived
    assert counters(derived) == BESIDE[adder]


@pytest.mark.parametrize("failing", ["first", "second"])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_failure_of_either_ends_both(failing: str, after: int) -> None:
    """The other never waits for a turn that does not come, whether it is behind, ahead or done."""
    shares = deal_ring(np.ones(3, np.uint32), np.random.default_rng(1))

    def fail(trio: Trio, x: RingShare) -> RingShare:
        products(after)(trio, x)
        raise ProtocolAborted("this protocol fails")

    def body(trio: Trio) -> None:
        other = trio.fork("beside")
        runs = [fail, products(2)] if failing == "first" else [products(2), fail]
        with pytest.raises(ProtocolAborted, match="this protocol fails"):
            interleave(
                trio, lambda: runs[0](trio, shares[trio.me]), other, lambda: runs[1](other, shares[other.me])
            )
        assert trio.turn is other.turn  # both are alone again
        multiply(trio, shares[trio.me], shares[trio.me])

    run_trio(body)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "rounds"), [((2, 3), 5, 5), ((2, 3), 8, 8), ((2, 3), 0, 5), ((0, 0), 4, 4)]
)
def test_what_is_under_way_goes_on_beside_one_after_the_other(
    first: tuple[int, int], second: int, rounds: int, ahead: bool
) -> None:
    """Its rounds are theirs, as far as they go, whether its first messages leave before theirs or after."""
    x = np.arange(5, dtype=np.uint32)
    shares = deal_ring(x, np.random.default_rng(1))

    def body(trio: Trio) -> tuple[RingShare, ...]:
        other, mine = trio.fork("beside"), shares[trio.me]
        underway = Underway(other, lambda: products(second)(other, mine))
        if ahead:
            underway.turn()
        with underway.beside(trio):
            one = products(first[0])(trio, mine)
        with underway.beside(trio):
            two = products(first[1])(trio, mine)
        result = underway.end()
        assert trio.turn is other.turn  # both are alone again
        return one, two, result

    results, traffic = run_trio(body)
    for position, count in enumerate((*first, second)):
        np.testing.assert_array_equal(total([result[position] for result in results]), x ** (1 << count))
    assert {t.rounds for t in traffic} == {rounds}


def test_what_is_under_way_ends_with_what_it_was_begun_for() -> None:
    """Its thread stands nowhere when nobody is left to give it a turn; what it raises is raised at its turn."""
    shares = deal_ring(np.ones(3, np.uint32), np.random.default_rng(1))

    def body(trio: Trio) -> None:
        other, third = trio.fork("beside"), trio.fork("failing")
        underway = Underway(other, lambda: products(3)(other, shares[other.me]))
        underway.turn()
        thread = underway._second._thread
        assert thread.is_alive()
        del underway
        assert not thread.is_alive()

        def fail() -> None:
            multiply(third, shares[third.me], shares[third.me])
            raise ProtocolAborted("this protocol fails")

        failing = Underway(third, fail)
        failing.turn()
        with pytest.raises(ProtocolAborted, match="this protocol fails"):
            failing.turn()

    run_trio(body)


def test_streams_do_not_share_masks() -> None:
    """The same parts reshared in both protocols travel under different masks."""
    frames: list[Frame] = []

    def body(trio: Trio) -> None:
        other = trio.fork("beside")
        parts = np.zeros(8, np.uint64)
        interleave(trio, lambda: reshare(trio, parts), other, lambda: reshare(other, parts))

    run_trio(body, tap=frames.append)
    assert len({frame.payload for frame in frames}) == len(frames) == 6


def test_a_thread_that_cannot_begin_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is out: the new thread dies before it says that it is there."""
    gates: Any = SimpleNamespace()
    monkeypatch.setattr("mpc_protocols.process.threads.START_S", 0.01)
    monkeypatch.setattr(threading, "_start_new_thread", lambda *given: None)
    with pytest.raises(MemoryError):
        interleave(gates, lambda: 1, gates, lambda: 2)
