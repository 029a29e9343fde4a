"""The oracle over vertical data end to end, against IdealOracle over `ideal_counts`: same steps, same
answers, same events."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.vertical import planner
from mpc_protocols.backends.replicated.vertical.contributor import VerticalContributor
from mpc_protocols.errors import DataRefused, PeerLost, ProtocolAborted
from mpc_protocols.functionality import Level, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.trio import Trio
from tests.worlds.questions import columns_first
from tests.worlds.tables import SIZES, SMALL, facts

SPLITS = [(0, 0, 1, 1), (1, 2, 0, 0), (3, 0, 3, 0), (3, 4, 3, 4)]


def work(oracle: MarginalOracle) -> list[Any]:
    """All kinds of questions; at tiny sigma the answers have no noise, and each selection has one model that
    is far off."""
    seen, wide = columns_first(oracle)
    counts = oracle.measure(wide, SMALL)
    seen.append([list(x) for x in counts])
    for chosen in (3, 0, 4, 1):
        answers = [np.maximum(x, 0).astype(float) for x in counts]
        answers[chosen] = np.roll(answers[chosen], 1)[::-1] if chosen == 0 else np.zeros(len(counts[chosen]))
        seen.extend(oracle.select(wide, answers, [Fraction(2)] * 5, [Fraction(0)] * 5, Fraction(20)))
        assert seen[-1] == chosen
    return [*seen, oracle.total(SMALL)]


def party(wire: Wire, of: StudyFacts, data: VerticalData) -> Any:
    """One party of a run that asks all kinds of questions."""
    if wire.me == 1:
        with ReplicatedOracle(wire, of, data, Recorder()) as oracle:
            return work(oracle), oracle.state.transcript
    if wire.me < 3:
        follow(wire, of, data, Recorder())
    else:
        contribute(wire, of, data)
    return None


def serve(of: Partition, tables: dict[int, OwnRows], changed: dict[int, VerticalData] | None = None) -> Any:
    parties = max(3, max(of.owners) + 1)
    network = MemoryNetwork(parties, 3, session_id=facts().session)
    data = {i: VerticalData(of, tables.get(i)) for i in range(parties)} | (changed or {})
    return network.run([lambda wire: party(wire, facts(), data[wire.me])] * parties)[1]


def owners(split: tuple[int, ...], population: Population) -> tuple[Partition, dict[int, OwnRows]]:
    of = partition(SIZES, dict(zip(SIZES, split, strict=True)), population, 900)
    return of, random_owners(SIZES, of, [0.85] * len(of.owners), np.random.default_rng(3))


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("split", SPLITS)
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(
    split: tuple[int, ...], population: Population
) -> None:
    of, tables = owners(split, population)
    ideal = IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder())
    expected = work(ideal)
    answers, transcript = serve(of, tables)
    assert answers == expected
    assert transcript == ideal.state.transcript


@pytest.mark.parametrize("population", ["intersection", "union"])
def test_the_total_alone_shares_the_smallest_column(population: Population) -> None:
    of, tables = owners((1, 3, 0, 3), population)
    ideal = IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder())
    network = MemoryNetwork(4, 3, session_id=facts().session)

    def body(wire: Wire) -> Any:
        data = VerticalData(of, tables.get(wire.me))
        if wire.me == 1:
            with ReplicatedOracle(wire, facts(), data, Recorder()) as oracle:
                return oracle.total(SMALL), oracle.measure(oracle.prepare([("d", "a")]), SMALL)[0].tolist()
        return follow(wire, facts(), data, Recorder()) if wire.me < 3 else contribute(wire, facts(), data)

    total, counts = network.run([body] * 4)[1]
    assert total == ideal.total(SMALL)
    assert counts == ideal.measure(ideal.prepare([("d", "a")]), Fraction(1, 64))[0].tolist()


def test_parties_that_hold_different_partitions_stop() -> None:
    of, tables = owners((0, 0, 1, 1), "intersection")
    other = Partition(of.owners, of.columns, "intersection", {}, of.rows + 1)
    with pytest.raises(ProtocolAborted, match="other public inputs"):
        serve(of, tables, {2: VerticalData(other, None)})


def test_an_owner_without_its_rows_stops_the_run_before_anything_is_sent() -> None:
    of, tables = owners((0, 0, 3, 3), "intersection")
    with pytest.raises((DataRefused, ProtocolAborted, PeerLost)) as failed:
        serve(of, tables, {3: VerticalData(of, None)})
    assert "900" not in str(failed.value)


def run_party(wire: Wire, split: tuple[int, ...], population: Population) -> Any:
    """A asked of real processes: this party's part of the whole run, on data made alike everywhere."""
    of, tables = owners(split, population)
    result = party(wire, facts(), VerticalData(of, tables.get(wire.me)))
    return None if result is None else repr(result[0])


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("split", [(4, 0, 3, 1), (3, 4, 0, 4)])
def test_real_processes(trio_and_two: Trio, split: tuple[int, ...], population: Population) -> None:
    of, tables = owners(split, population)
    expected = work(IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder()))
    assert trio_and_two.run(run_party, split, population)[1] == repr(expected)


def test_a_contributor_that_stops_in_the_middle_ends_the_run_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has sent its columns, not its orders of the rows: nobody waits for ever, nothing is opened."""
    monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: True)

    def stop(*_: object) -> None:
        raise ProtocolAborted("The contributor was stopped.")

    monkeypatch.setattr(VerticalContributor, "_order", stop)
    of, tables = owners((0, 0, 3, 3), "intersection")
    with pytest.raises((ProtocolAborted, PeerLost)):
        serve(of, tables)


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("split", [(0, 1, 0, 1), (0, 3, 0, 3), (3, 4, 3, 4)])
def test_levels_of_split_columns(split: tuple[int, ...], population: Population) -> None:
    """Coarser columns are their columns' owner's; a missing value falls in its bin; nothing but the levels is
    shared."""
    levels = [
        Level(f"{column}/2", column, tuple(value % 2 for value in range(size)))
        for column, size in SIZES.items()
    ]
    names = [level.name for level in levels]

    def ask(oracle: MarginalOracle) -> list[Any]:
        handles = oracle.prepare([(names[0], names[1]), (names[2], "d")], levels)
        handles += oracle.prepare([(names[0], names[1], names[3]), (names[1],)], levels[:1])
        return [list(noisy) for noisy in oracle.measure(handles, SMALL)]

    of, tables = owners(split, population)

    def lead(wire: Wire) -> Any:
        data = VerticalData(of, tables.get(wire.me))
        if wire.me == 1:
            with ReplicatedOracle(wire, facts(), data, Recorder()) as oracle:
                return ask(oracle), list(oracle.state.shared), oracle.state.transcript
        if wire.me < 3:
            return follow(wire, facts(), data, Recorder())
        return contribute(wire, facts(), data)

    parties = max(3, max(of.owners) + 1)
    network = MemoryNetwork(parties, 3, session_id=facts().session)
    ideal = IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder())
    assert network.run([lead] * parties)[1] == (ask(ideal), list(ideal.state.shared), ideal.state.transcript)
