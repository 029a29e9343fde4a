"""The star of a training: exact bytes and rounds, and what is not believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.research.vertigan.star import COUNT_BYTES, MAX_VALUE, SEED_BYTES, Server, serve
from mpc_protocols.wire import Wire

SIZES = {"north": 5, "south": 3, "far": 4}
NUMBERS = {"north": 0, "south": 1, "far": 3}  # the server owns columns too; far only contributes
ROUNDS = 4
SEED = b"sixteen bytes ok"


class Doubling:
    """A trainer whose gradient is twice what it is sent."""

    def __init__(self, rows: int, change: Callable[[Any], Any] = lambda vector: vector) -> None:
        self.rows, self.seeds, self._change = rows, list[bytes](), change

    def count(self) -> int:
        """Exactly."""
        return self.rows

    def gradient(self, parameters: Any, seed: bytes) -> Any:
        """Twice the parameters, changed."""
        self.seeds.append(seed)
        return self._change(np.asarray(2 * parameters, np.float32))


def lead(wire: Wire) -> list[dict[str, Any]]:
    """The server's part."""
    server = Server(wire, NUMBERS, SIZES, Doubling(-7))
    found: list[dict[str, Any]] = [server.counts()]
    for number in range(ROUNDS):
        given = {name: np.full(size, number, np.float32) for name, size in SIZES.items()}
        found.append(server.gradients(given, SEED))
    return found


def follow(name: str, trainer: Doubling) -> Callable[[Wire], None]:
    return lambda wire: serve(wire, 1, trainer, SIZES[name], ROUNDS)


def test_gradients_come_back_with_exactly_the_bytes_and_rounds_said() -> None:
    network, north = MemoryNetwork(4), Doubling(12)
    results: list[Any] = network.run(
        [follow("north", north), lead, lambda wire: None, follow("far", Doubling(3))]
    )
    counts, *rounds = results[1]
    assert counts == {"north": 12, "south": -7, "far": 3}
    for number, gradients in enumerate(rounds):
        assert {name: found.tolist() for name, found in gradients.items()} == {
            name: [2.0 * number] * size for name, size in SIZES.items()
        }
    assert north.seeds == [SEED] * ROUNDS
    away = SIZES["north"] + SIZES["far"]
    assert network.traffic(1).bytes_sent == ROUNDS * (2 * SEED_BYTES + 4 * away)
    assert network.traffic(0).bytes_sent == COUNT_BYTES + ROUNDS * 4 * SIZES["north"]
    assert network.traffic(1).rounds == 1 + 2 * ROUNDS and network.traffic(2).bytes_sent == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda vector: vector * np.nan,
        lambda vector: vector + np.inf,
        lambda vector: vector + 2 * MAX_VALUE,
        lambda vector: vector[:-1],
        lambda vector: np.append(vector, 0),
    ],
    ids=["not a number", "infinite", "too large", "too short", "too long"],
)
def test_what_no_owner_sends_ends_the_run(change: Callable[[Any], Any]) -> None:
    with pytest.raises(ProtocolAborted) as error:
        MemoryNetwork(4).run(
            [follow("north", Doubling(1, change)), lead, lambda wire: None, follow("far", Doubling(3))]
        )
    assert error.value.exit_code == 40


def test_an_owner_does_not_believe_the_server() -> None:
    def server(wire: Wire) -> None:
        wire.receive(0, COUNT_BYTES)
        wire.send(0, SEED + np.full(5, np.nan, "<f4").tobytes())
        wire.receive(0, 20)

    with pytest.raises(ProtocolAborted, match="infinite"):
        MemoryNetwork(3).run([follow("north", Doubling(1)), server, lambda wire: None])


def test_a_number_of_rows_that_nobody_has_ends_the_run() -> None:
    with pytest.raises(ProtocolAborted, match="number of rows"):
        MemoryNetwork(4).run(
            [follow("north", Doubling(1 << 60)), lead, lambda wire: None, follow("far", Doubling(3))]
        )


def test_an_owner_that_stops_in_the_middle_ends_the_run() -> None:
    def stops(wire: Wire) -> None:
        serve(wire, 1, Doubling(1), SIZES["north"], 2)

    with pytest.raises((PeerLost, ProtocolAborted)):
        MemoryNetwork(4).run([stops, lead, lambda wire: None, follow("far", Doubling(3))])
