"""What a party holds of the rows is one row block, however many rows there are."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from mpc_protocols.memory_wire import MemoryNetwork
from mpc_protocols.partition import VerticalData
from mpc_protocols.replicated.sharing.trio import Trio
from mpc_protocols.replicated.vertical import orders, planner
from mpc_protocols.replicated.vertical.source import VerticalMarginals
from mpc_protocols.wire import Wire
from tests.mpc_protocols.replicated.vertical.owners import Population, facts, partition, random_owners
from tests.mpc_protocols.replicated.vertical.test_source import PAIRS, POPULATIONS, SIZES, SPLITS, TRIPLES


def peak(population: Population, split: str, rows: int) -> int:
    """Bytes allocated at most by all three parties together while they share, beyond what they brought."""
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, rows)
    tables = random_owners(SIZES, of, [0.9] * len(of.owners), np.random.default_rng(0))
    network = MemoryNetwork(3, patience_s=30)
    sources: list[VerticalMarginals | None] = [None] * 3

    def bring(wire: Wire) -> None:
        sources[wire.me] = VerticalMarginals(Trio(wire), facts(SIZES), VerticalData(of, tables.get(wire.me)))

    def share(wire: Wire) -> None:
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
    """Five times the rows, the same peak within a quarter of it (threads do not meet at the same points in every run)."""
    monkeypatch.setattr(planner, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(orders, "BATCH", 1 << 17)
    few, many = peak(population, split, 12_000), peak(population, split, 60_000)
    assert many < 1.25 * few + (1 << 18)
    assert (
        few < 3 * 4 * planner.BLOCK_BYTES
    )  # three parties, each some times its row block: masks, messages under way, products
