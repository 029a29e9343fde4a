"""Rounds, bytes and messages of vertical marginals equal `costs`, exactly, and depend on public sizes only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Clique
from mpc_protocols.memory_wire import Frame, MemoryNetwork
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import EndStep, PrepareStep
from mpc_protocols.replicated import step_costs
from mpc_protocols.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.replicated.vertical import costs, orders, planner
from mpc_protocols.replicated.vertical.planner import schedule_of
from mpc_protocols.wire import Wire
from runner.conformance.guards import Recorder
from tests.mpc_protocols.replicated.test_costs import compare
from tests.mpc_protocols.replicated.vertical.owners import (
    Population,
    facts,
    partition,
    random_owners,
    shared_marginals,
)
from tests.mpc_protocols.replicated.vertical.test_source import PAIRS, POPULATIONS, SIZES, SPLITS, TRIPLES


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("by_permutation", [False, True])
def test_counters_equal_the_costs(
    monkeypatch: pytest.MonkeyPatch, population: Population, split: str, by_permutation: bool
) -> None:
    """Two requests over several blocks and batches; `by_permutation`: every joint as an order of the rows, contributors' too."""
    monkeypatch.setattr(planner, "MAX_BLOCK_ROWS", 300)
    monkeypatch.setattr(orders, "BATCH", 30_000)
    if by_permutation:
        monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: True)
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 700)
    tables = random_owners(SIZES, of, [0.9] * len(of.owners), np.random.default_rng(0))
    batches: list[Sequence[Clique]] = [PAIRS, TRIPLES[::6]]
    _, _, network = shared_marginals(SIZES, of, tables, batches)
    tally, schedule = Tally.of(network.parties), schedule_of(of, facts(SIZES), 3)
    for batch in batches:
        costs.share(tally, facts(SIZES), schedule.next(batch))
    compare(tally, [network.traffic(party) for party in range(network.parties)])


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", ["two", "two that only contribute", "four"])
def test_sizes_and_order_of_messages_do_not_depend_on_data(population: Population, split: str) -> None:
    """All records common, none, random: every party sends messages of the same sizes in the same order to the same peers."""
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
def test_a_whole_run_that_prepares(population: Population, split: str) -> None:
    """Pace, two requests as the leader announces them, the end."""
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
    tally, schedule, state = (
        Tally.of(parties),
        schedule_of(of, facts(SIZES), 3),
        PublicState(facts(SIZES), 3),
    )
    step_costs.agree_on_delay(tally)
    for batch in (PAIRS, TRIPLES[:3]):
        step = PrepareStep(tuple(batch))
        fresh = state.begin(step).fresh
        request = len(PrepareStep(tuple(fresh)).to_bytes())
        costs.prepare_vertical(tally, len(step.to_bytes()), request, facts(SIZES), schedule.next(fresh))
    step_costs.end(tally, len(EndStep().to_bytes()))
    compare(tally, [network.traffic(party) for party in range(parties)])
