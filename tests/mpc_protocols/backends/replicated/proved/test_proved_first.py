"""Nothing is opened before the products that it depends on are proved: one wrong AND, alone in a run, and it
says so."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire, outcomes
from tests.mpc_protocols.backends.replicated.proved.openings import noted_openings
from tests.mpc_protocols.backends.replicated.proved.test_engine import party
from tests.worlds.tables import facts

CHEAT = 2
SENTENCE = "Party 1 says that party 2 sent it products that are not those of its shares"


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Who has begun to open something, in order."""
    return noted_openings(monkeypatch)


class Wrong(CheatingWire):
    """Flips a bit of the one message of products that `chosen` names, in place: its sender goes on with what
    it has sent, so that all later products are right. Forks have wires of this kind, too."""

    def __init__(self, wire: Any, chosen: Callable[[str, int], bool], stream: str = "") -> None:
        """chosen: of the stream's name and the number of messages of products on it before."""
        super().__init__(wire, lambda *_: None)
        self._chosen, self._stream, self._before = chosen, stream, 0

    def send(self, peer: int, payload: Any) -> None:
        if peer == (self._wire.me - 1) % 3 and isinstance(
            payload, memoryview
        ):  # what else goes there is bytes
            if self._chosen(self._stream, self._before):
                payload[0] ^= 1
            self._before += 1
        super().send(peer, payload)

    def fork(self, name: str) -> Wrong:
        return Wrong(self._wire.fork(name), self._chosen, name)


def run(
    body: Callable[[MarginalOracle], Any], stream: str, number: int, ahead: bool = False
) -> tuple[list[Any], int]:
    """The outcomes when one message of products is wrong, and how often it was met; of number -1, how many
    there are."""
    of, met = facts(), []

    def chosen(on: str, before: int) -> bool:
        met.append((on, before))
        return (on, before) == (stream, number)

    def each(wire: Any) -> Any:
        return party(Wrong(wire, chosen) if wire.me == CHEAT else wire, body, of, ahead)

    found = outcomes(each, network=MemoryNetwork(3, session_id=of.session))
    return found, met.count((stream, number)) if number >= 0 else sum(on == stream for on, _ in met)


def test_a_wrong_product_of_a_measurement_is_found_before_it_is_opened(openings: list[int]) -> None:
    def body(oracle: MarginalOracle) -> Any:
        return [cells.tolist() for cells in oracle.measure(oracle.prepare([("a", "b")]), Fraction(9))]

    found, met = run(body, "", 1)
    assert met == 1 and not openings
    assert all(SENTENCE in str(found[honest]) for honest in (0, 1)), found


def test_a_wrong_product_of_a_selections_noise_is_found_before_the_pick_is_opened(
    openings: list[int],
) -> None:
    """The noise is made beside the scores, on a wire of its own."""

    def body(oracle: MarginalOracle) -> Any:
        handles = oracle.prepare([("a", "b"), ("c", "d")])
        answers = [np.full(12, 70.0), np.full(10, 60.0)]
        weights = [Fraction(1), Fraction(1)]
        return oracle.select(handles, answers, weights, [Fraction(0)] * 2, Fraction(40))

    found, met = run(body, "noise", 0)
    assert met == 1 and not openings
    assert all(SENTENCE in str(found[honest]) for honest in (0, 1)), found


def test_a_wrong_product_of_noise_made_ahead_is_found_before_the_next_step(openings: list[int]) -> None:
    """After a measurement the noise of the next steps is made and proved, while the leader computes by
    itself."""
    reached: list[str] = []

    def body(oracle: MarginalOracle) -> Any:
        handles = oracle.prepare([("a", "b"), ("c", "d")])
        answers = [np.full(12, 70.0), np.full(10, 60.0)]
        weights = [Fraction(1), Fraction(1)]
        for _ in range(2):
            oracle.expect(Fraction(9))
            oracle.select(handles, answers, weights, [Fraction(0)] * 2, Fraction(40))
            oracle.measure(handles[:1], Fraction(9))
            reached.append("measured")
        return "done"

    found, messages = run(body, "noise", -1, ahead=True)
    assert found[1] == "done" and reached == ["measured"] * 2
    reached.clear()
    openings.clear()
    found, met = run(body, "noise", messages - 1, ahead=True)
    assert met == 1 and reached == ["measured"]
    assert sorted(openings) == [0, 0, 1, 1, 2, 2]  # a pick and a measurement
    assert all(SENTENCE in str(found[honest]) for honest in (0, 1)), found
