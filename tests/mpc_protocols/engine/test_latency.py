"""The echoes by which parties learn how far apart they are: what is measured, what it costs, and who does not play along."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from mpc_protocols.engine import latency
from mpc_protocols.engine.latency import MAX_DELAY_US, TOKENS, agree_on_delay, count_delay
from mpc_protocols.engine.tally import Tally
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire


class Told:
    """A leader's wire on which each peer's echoes arrive at the times given, by a clock that nothing else moves."""

    def __init__(self, arrivals: dict[int, list[float]]) -> None:
        self.now, self._arrivals = 0.0, {peer: deque(times) for peer, times in arrivals.items()}

    def send(self, peer: int, payload: bytes) -> None:
        assert len(payload) == 1

    def receive(self, peer: int, size: int) -> bytes:
        self.now = max(self.now, self._arrivals[peer].popleft())
        return bytes(size)


@pytest.mark.parametrize(
    ("arrivals", "seconds"),
    [
        ({0: [3.0] * TOKENS, 2: [5.0] * TOKENS}, 5.0),  # the farthest counts
        ({0: [1.0, 1.0, 9.0, 9.0], 2: [8.0] * TOKENS}, 8.0),  # of each token, all echoes
        ({0: [1.0] * TOKENS}, 1.0),  # two parties
        ({0: [0.0] * TOKENS, 2: [0.0] * TOKENS}, 0.0),  # sent before they were asked: near, and nothing else
    ],
)
def test_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, arrivals: dict[int, list[float]], seconds: float
) -> None:
    wire: Any = Told(arrivals)
    monkeypatch.setattr("mpc_protocols.engine.latency.time.perf_counter", lambda: wire.now)
    assert latency._echoed(wire, list(arrivals), TOKENS) == seconds


@pytest.mark.parametrize("seconds", [1e-3, 2 * MAX_DELAY_US / 1e6, 1e9])
def test_half_of_it_is_told_and_no_more_than_is_believed(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    wire: Any = Told({0: [0.0] + [seconds] * TOKENS})
    monkeypatch.setattr("mpc_protocols.engine.latency.time.perf_counter", lambda: wire.now)
    assert latency._measure(wire, [0]) == min(MAX_DELAY_US, round(seconds / 2 * 1e6))


@pytest.mark.parametrize("parties", range(2, 9))
def test_all_parties_learn_the_same_and_send_what_is_counted(parties: int) -> None:
    for leader in (0, parties - 1):
        network, tally = MemoryNetwork(parties, parties), Tally.of(parties)
        found = network.run([lambda wire, leader=leader: agree_on_delay(wire, leader)] * parties)  # type: ignore[misc]
        assert len(set(found)) == 1
        count_delay(tally, parties, leader)
        assert tally.sent == [network.traffic(party).bytes_sent for party in range(parties)]
        assert tally.rounds == max(network.traffic(party).rounds for party in range(parties)) == 5


def _early(stream: Wire) -> None:
    """Echoes before it hears a token, and more than there are."""
    for _ in range(100 * TOKENS):
        stream.send(0, b"\1")
    for _ in range(1 + TOKENS):
        stream.receive(0, 1)


def test_echoes_that_come_early_change_no_more_than_the_number() -> None:
    def party(wire: Wire) -> int:
        if wire.me != 2:
            return agree_on_delay(wire, 0)
        stream = wire.fork("pace")
        _early(stream)
        return int.from_bytes(stream.receive(0, 4), "little")

    assert len(set(MemoryNetwork(3).run([party] * 3))) == 1


def _first(payload: bytes) -> Callable[[Wire], None]:
    def answer(stream: Wire) -> None:
        stream.receive(0, 1)
        stream.send(0, payload)

    return answer


@pytest.mark.parametrize("payload", [b"", b"\0\0", bytes(1 << 20)], ids=["none", "two", "many"])
def test_an_echo_of_another_length_ends_the_run(payload: bytes) -> None:
    def party(wire: Wire) -> None:
        if wire.me == 2:
            _first(payload)(wire.fork("pace"))
        else:
            agree_on_delay(wire, 0)

    with pytest.raises(ProtocolAborted, match=f"Party 2 sent {len(payload)} bytes where 1 were due"):
        MemoryNetwork(3).run([party] * 3)
