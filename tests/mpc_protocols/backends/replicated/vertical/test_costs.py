"""What a dry run counts of vertical marginals is what travels, exactly, and depends on public sizes only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mpc_protocols.backends.replicated.backend import BACKEND
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.vertical import orders, planner
from mpc_protocols.functionality import Clique
from mpc_protocols.in_memory.engine_dry_run import EngineDryRun
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.vertical.partition import VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.test_costs import counters
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    facts,
    partition,
    random_owners,
    shared_marginals,
    traffic_without_content,
)
from tests.mpc_protocols.backends.replicated.vertical.test_source import (
    PAIRS,
    POPULATIONS,
    SIZES,
    SPLITS,
    TRIPLES,
)

KNOWN = {
    ("intersection", "two"): (21, 479320),
    ("intersection", "two, the other way round"): (34, 734648),
    ("intersection", "three"): (27, 843094),
    ("intersection", "two that only contribute"): (39, 1021322),
    ("intersection", "one of each"): (39, 825944),
    ("intersection", "four"): (43, 703102),
    ("intersection", "five"): (45, 1009182),
    ("intersection", "eight"): (46, 1131750),
    ("union", "two"): (25, 411266),
    ("union", "two, the other way round"): (34, 666456),
    ("union", "three"): (24, 942156),
    ("union", "two that only contribute"): (45, 1783540),
    ("union", "one of each"): (37, 1269772),
    ("union", "four"): (37, 847750),
    ("union", "five"): (41, 1322892),
    ("union", "eight"): (30, 1683384),
}
"""Rounds, and bytes of all parties, of the two requests."""
KNOWN_WHOLE = {
    ("intersection", "two"): (16, 224430),
    ("intersection", "four"): (31, 301098),
    ("union", "two"): (17, 177278),
    ("union", "four"): (23, 297410),
}
"""The same of a whole run."""


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("by_permutation", [False, True])
def test_counters_equal_the_costs(
    monkeypatch: pytest.MonkeyPatch, population: Population, split: str, by_permutation: bool
) -> None:
    """Two requests over several blocks and batches; `by_permutation`: every joint as an order of the rows,
    contributors' too."""
    monkeypatch.setattr(planner, "MAX_BLOCK_ROWS", 300)
    monkeypatch.setattr(orders, "BATCH", 30_000)
    if by_permutation:
        monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: True)
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 700)
    tables = random_owners(SIZES, of, [0.9] * len(of.owners), np.random.default_rng(0))
    batches: list[Sequence[Clique]] = [PAIRS, TRIPLES[::6]]
    _, _, network = shared_marginals(SIZES, of, tables, batches)
    traffic = [network.traffic(party) for party in range(network.parties)]
    assert traffic == traffic_without_content(SIZES, of, batches)
    if not by_permutation:
        assert (max(party.rounds for party in traffic), sum(party.bytes_sent for party in traffic)) == KNOWN[
            population, split
        ]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", ["two", "two that only contribute", "four"])
def test_sizes_and_order_of_messages_do_not_depend_on_data(population: Population, split: str) -> None:
    """All records common, none, random: every party sends messages of the same sizes in the same order to the
    same peers."""
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 300)
    seen = []
    for share in (0.0, 0.5, 1.0):
        frames: list[Frame] = []
        shared_marginals(
            SIZES,
            of,
            random_owners(SIZES, of, [share] * len(of.owners), np.random.default_rng(1)),
            [PAIRS],
            frames.append,
        )
        seen.append(
            {
                (i, j): [(f.clock, len(f.payload)) for f in frames if (f.sender, f.receiver) == (i, j)]
                for i in range(8)
                for j in range(8)
            }
        )
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", ["two", "four"])
def test_a_whole_run_that_prepares(
    monkeypatch: pytest.MonkeyPatch, population: Population, split: str
) -> None:
    """Pace, two requests as the leader announces them, the end."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: 1 << 16)
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 500)
    tables = random_owners(SIZES, of, [0.9] * len(of.owners), np.random.default_rng(0))
    parties = max(3, max(of.owners) + 1)
    network = MemoryNetwork(parties, 3)

    def party(wire: Wire) -> None:
        data = VerticalData(of, tables.get(wire.me))
        if wire.me == 1:
            with ReplicatedOracle(wire, facts(SIZES), data, Recorder()) as oracle:
                for batch in (PAIRS, TRIPLES[:3]):
                    oracle.prepare(batch)
        elif wire.me < 3:
            follow(wire, facts(SIZES), data, Recorder())
        else:
            contribute(wire, facts(SIZES), data)

    network.run([party] * parties)
    dry = BACKEND.dry_run(PresumedRun(facts(SIZES), ideal_counts(of, tables, SIZES), 3, parties - 3, of))
    assert isinstance(dry, EngineDryRun)
    for batch in (PAIRS, TRIPLES[:3]):
        dry.prepare(batch)
    dry.close()
    traffic = [network.traffic(party) for party in range(parties)]
    assert counters(traffic) == (dry.tally.clocks, dry.tally.sent, dry.tally.messages)
    assert (dry.rounds, sum(dry.sent)) == KNOWN_WHOLE[population, split]
