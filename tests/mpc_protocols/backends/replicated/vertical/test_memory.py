"""What a party holds of the rows is one row block, however many rows there are."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import numpy as np
import pytest

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical import orders, planner
from mpc_protocols.backends.replicated.vertical.source import VerticalMarginals
from mpc_protocols.in_memory.memory_wire import MemoryNetwork, MemoryWire
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    facts,
    partition,
    random_owners,
)
from tests.mpc_protocols.backends.replicated.vertical.test_source import (
    PAIRS,
    POPULATIONS,
    SIZES,
    SPLITS,
    TRIPLES,
)


class TurnTaking(MemoryNetwork):
    """Parties that run one at a time, each until it must wait for a message: the same order, and memory, in
    every run."""

    def __init__(self, parties: int, computing: int = 3) -> None:
        super().__init__(parties, computing)
        self._turn = 0
        self._gone: set[int] = set()
        self._turns = threading.Condition()

    def wire(self, number: int) -> MemoryWire:
        return _PatientWire(self, self._members[number], "")

    def wait(self, number: int) -> None:
        """Return when it is the turn of party `number`."""
        with self._turns:
            self._turns.wait_for(lambda: self._turn == number)

    def hand_on(self, number: int) -> None:
        """Give the turn to the next party that has not ended."""
        with self._turns:
            others = [(number + step) % self.parties for step in range(1, self.parties + 1)]
            self._turn = next((party for party in others if party not in self._gone), number)
            self._turns.notify_all()

    def end(self, number: int, failure: BaseException | None) -> None:
        super().end(number, failure)
        self._gone.add(number)
        self.hand_on(number)


class _PatientWire(MemoryWire):
    """A wire that hands its party's turn on while the message it wants is not there."""

    _network: TurnTaking

    def fork(self, name: str) -> MemoryWire:
        return _PatientWire(self._network, self._party, self._named(name))

    def _take(self, peer: int) -> bytes:
        while self._network.channel(self._stream, peer, self.me).empty():
            self._network.hand_on(self.me)
            self._network.wait(self.me)
        return super()._take(peer)


def peak(population: Population, split: str, rows: int) -> int:
    """Bytes allocated at most by all three parties together while they share, beyond what they brought."""
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, rows)
    tables = random_owners(SIZES, of, [0.9] * len(of.owners), np.random.default_rng(0))
    network = TurnTaking(3)
    sources: list[VerticalMarginals | None] = [None] * 3

    def bring(wire: Wire) -> None:
        sources[wire.me] = VerticalMarginals(Trio(wire), facts(SIZES), VerticalData(of, tables.get(wire.me)))

    def share(wire: Wire) -> None:
        network.wait(wire.me)
        source = sources[wire.me]
        assert source is not None
        source.share([*PAIRS, *TRIPLES[::7]], (), b"")

    for party in range(3):
        bring(network.wire(party))
    gc.collect()
    tracemalloc.start()
    try:
        network.run([share] * 3)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", ["two", "three"])
def test_memory_does_not_grow_with_the_rows(
    monkeypatch: pytest.MonkeyPatch, population: Population, split: str
) -> None:
    """Five times the rows, the same peak within a quarter of it."""
    monkeypatch.setattr(planner, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(orders, "BATCH", 1 << 17)
    few, many = peak(population, split, 12_000), peak(population, split, 60_000)
    print(population, split, few, many)
    assert many < 1.25 * few + (1 << 18)
    assert (
        few < 3 * 4 * planner.BLOCK_BYTES
    )  # three parties, each some times its row block: masks, messages under way, products
