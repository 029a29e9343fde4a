"""The cost functions are the wire's counters, to the byte, the message and the round."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import AllowAll
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.pool import GAUSSIAN_ROWS, GUMBEL_ROWS, PoolModel
from mpc_protocols.engine.step_costs import FreshInputs, Group
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Clique, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.memory_wire import Frame, MemoryNetwork
from mpc_protocols.pair.backend import BACKEND
from mpc_protocols.pair.circuits import sign
from mpc_protocols.pair.circuits.conversion import lift, weighted_sum
from mpc_protocols.pair.circuits.gmw import and_bits, open_bits, string_sums
from mpc_protocols.pair.circuits.l1_distance import l1_sums
from mpc_protocols.pair.circuits.sign import signs
from mpc_protocols.pair.circuits.zero_test import zero_cells
from mpc_protocols.pair.costs import PairCosts
from mpc_protocols.pair.engine import DEALERS
from mpc_protocols.pair.link import Link
from mpc_protocols.pair.oracle import ROLES, contribute
from mpc_protocols.pair.steps import StepCosts
from mpc_protocols.pair.transfers import random_ot, transfer_pool
from mpc_protocols.pair.transfers.random_ot import Transfers
from mpc_protocols.pair.transfers.transfer_pool import Demand
from mpc_protocols.pair.vertical.contingency import Column, TableShape, of_paths, of_vectors
from mpc_protocols.partition import VerticalData, ideal_counts
from mpc_protocols.public.state import PublicState
from mpc_protocols.wire import Wire
from tests.mpc_protocols.replicated.vertical.owners import partition, random_owners
from tests.worlds import tables
from tests.worlds.questions import work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SMALL, counter, facts
from tests.worlds.words import random_words


def protocols(transfers: Transfers) -> None:
    words = random_words
    transfers.reserve(Demand(bits=(3, 1), shorts=(2, 0), rows=(0, 2)))
    and_bits(transfers, words(3, 5), words(3, 5))
    and_bits(transfers, words(9), words(9))
    string_sums(transfers, words(4, 3), words(4, 70, 3))
    open_bits(transfers.link, words(6))
    for adder in ("ripple", "tree"):
        signs(transfers, words(130).astype(np.uint32), 18, adder)
        signs(transfers, words(100).astype(np.uint32), 18, adder)
        l1_sums(transfers, words(250).astype(np.uint32), np.array([250]), 12, adder)
        lift(transfers, words(170).astype(np.uint16), np.uint32, adder)
    zero_cells(transfers, words(5, 2), 100)
    weighted_sum(transfers, words(5, 2), [1, 2, 3, 4, 5], 100, np.uint64)
    for owner in (0, 1):
        shape = TableShape(owner, 90, 5, 3, np.uint16)
        if transfers.link.me == owner:
            of_paths(transfers, shape, np.zeros(90, np.intp))
        else:
            of_vectors(transfers, shape, [Column(np.zeros(90, np.intp), 3)])
    string_sums(transfers, words(3, 6000), words(3, 2, 6000))


def predicted() -> Tally:
    tally = Tally.of(2)
    costs = PairCosts(tally)
    costs.start()
    costs.reserve(Demand(bits=(3, 1), shorts=(2, 0), rows=(0, 2)))
    costs.and_words(15)
    costs.and_words(9)
    costs.string_sums(4, 70, 3)
    costs.opening(48)
    for adder in ("ripple", "tree"):
        costs.carry(17, 130, adder)
        costs.carry(17, 100, adder)
        costs.l1_sums(250, 12, adder)
        costs.lift(170, 2, 4, adder)
    costs.zero_cells(5, 100)
    costs.weighted_sum(5, 100, 8)
    for owner in (0, 1):
        costs.table(TableShape(owner, 90, 5, 3, np.uint16))
    costs.string_sums(3, 2, 6000)
    return tally


@pytest.mark.parametrize("ahead", [0, 100])
def test_costs_are_the_counters(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "CHUNK", 128)
    monkeypatch.setattr(random_ot, "BATCH", 40)
    for module in ("transfers.random_ot", "costs"):
        monkeypatch.setattr(f"mpc_protocols.pair.{module}.BATCH", 40)
    monkeypatch.setattr(transfer_pool, "AHEAD_BITS", ahead)
    monkeypatch.setattr(transfer_pool, "AHEAD_ROWS", ahead // 10)
    network = MemoryNetwork(2, 2)

    def party(wire: Wire) -> None:
        protocols(Transfers.start(Link(wire)))

    network.run([party] * 2)
    tally = predicted()
    traffic = [dataclasses.astuple(network.traffic(i)) for i in range(2)]
    assert [of[0] for of in traffic] == tally.sent
    assert [of[2] for of in traffic] == tally.messages
    assert max(of[3] for of in traffic) == tally.rounds


SIZES = {"a": 9, "b": 11, "c": 30}
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]


def whole_run(wire: Wire) -> None:
    """Every kind of step, at the leader, the other party or a contributor."""
    of = StudyFacts(SIZES, "add-remove", 1, 100_000, b"s" * 32)

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [np.arange(of.cells(clique)) for clique in cliques]

    if wire.me == 0:
        ROLES.follow(wire, of, counts, AllowAll())
    elif wire.me > 1:
        contribute(wire, of, counts)
    else:
        with ROLES.lead(wire, of, counts, AllowAll()) as oracle:
            handles = oracle.prepare(CLIQUES)
            oracle.measure(handles[:1], Fraction(100))
            answers = [np.full(of.cells(clique), 7.0) for clique in CLIQUES]
            answers[1][:100] = 0
            for _ in range(2):
                oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1))
            oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1), 2)
            oracle.measure(handles, [Fraction(4), Fraction(4), Fraction(9)])
            oracle.distances(handles, answers, Fraction(100))
            oracle.total(Fraction(100))


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
def test_costs_of_a_whole_run_are_the_counters(latency_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency_bytes)
    of = StudyFacts(SIZES, "add-remove", 1, 100_000, b"s" * 32)
    network = MemoryNetwork(4, 2, session_id=b"s" * 32)
    seen: list[Frame] = []
    network.tap = seen.append
    network.run([whole_run] * 4)
    announced = [
        len(f.payload)
        for f in seen
        if f.sender == 1 and f.receiver == 0 and f.payload[:2] + f.payload[-1:] == b'{"}'
    ]
    requests = [len(f.payload) for f in seen if f.sender == 1 and f.receiver == 2]

    state = PublicState(of, DEALERS)
    run = StepCosts(contributors=2, latency_bytes=latency_bytes)
    cells = [of.cells(clique) for clique in CLIQUES]
    gumbel_pool, gaussian_pool = PoolModel(GUMBEL_ROWS), PoolModel(GAUSSIAN_ROWS)
    run.prepare(announced[0], FreshInputs(requests[0], [sum(cells)]))
    handles = list(state.begin_prepare(CLIQUES, ()).handles)
    begun_measure = state.begin_measure(handles[:1], Fraction(100))
    of_100 = begun_measure.plan.samplers[0]
    run.measure(announced[1], [(of_100, cells[0])], gaussian_pool.take(of_100.digest, cells[0]))
    state.learn_counts(begun_measure, [np.arange(cells[0]) * 4])
    answers = [np.full(count, 7.0) for count in cells]
    answers[1][:100] = 0
    for number, picks in ((2, 1), (3, 1), (4, 2)):
        begun, rounded = state.begin_select(
            handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1), picks
        )
        plan = begun.plan
        assert len(plan.contenders) == 3
        groups = Group.of(rounded)
        generated = gumbel_pool.take((plan.a, plan.ring_bits), picks * 3)
        lists = [3, 2] if picks == 2 else []
        run.select(announced[number], groups, plan, generated, lists)
        state.learn_selection(begun, list(range(picks)))
    begun_measure = state.begin_measure(handles, [Fraction(4), Fraction(4), Fraction(9)])
    runs = [(of_run, sum(lengths)) for of_run, lengths in by_sampler(begun_measure.plan.samplers, cells)]
    run.measure(announced[5], runs)
    state.learn_counts(begun_measure, [np.zeros(count, np.int64) for count in cells])
    begun_distances, rounded = state.begin_distances(handles, answers, Fraction(100))
    groups = Group.of(rounded)
    generated = gaussian_pool.take(of_100.digest, 3)
    run.distances(announced[6], groups, of_100, 3, begun_distances.answers.planes, generated)
    run.measure(announced[7], [(of_100, 1)], gaussian_pool.take(of_100.digest, 1))
    run.end(announced[8])
    traffic = [network.traffic(i) for i in range(4)]
    assert [of_party.messages_sent for of_party in traffic] == run.tally.messages
    assert [of_party.bytes_sent for of_party in traffic] == run.tally.sent
    assert max(of_party.rounds for of_party in traffic) == run.tally.rounds


@pytest.mark.parametrize("split", [False, True])
def test_a_dry_run_counts_what_the_run_sends(split: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At tiny noise both give the same answers, so the same messages."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    of, data = facts(), [*map(counter, (PARTS[0], PARTS[1], CONTRIBUTORS[0]))]
    presumed: LocalCounts = counter(np.concatenate([PARTS[0], PARTS[1], CONTRIBUTORS[0]]))
    common, brought, parties = None, [*data], 3
    if split:
        common = partition(tables.SIZES, {"a": 0, "b": 1, "c": 1, "d": 0}, "union", 400)
        owned = random_owners(tables.SIZES, common, (0.9, 0.9), np.random.default_rng())
        presumed = ideal_counts(common, owned, tables.SIZES)
        brought, parties = [VerticalData(common, owned[owner]) for owner in (0, 1)], 2  # type: ignore[misc]
    network = MemoryNetwork(parties, 2, session_id=of.session)

    def party(wire: Wire) -> object:
        if wire.me == 1:
            with ROLES.lead(wire, of, brought[1], AllowAll()) as oracle:
                return questions(oracle)
        if wire.me == 0:
            return ROLES.follow(wire, of, brought[0], AllowAll())
        return contribute(wire, of, brought[2])  # type: ignore[func-returns-value]

    found = network.run([party] * parties)[1]
    dry = BACKEND.dry_run(of, presumed, 2, parties - 2, common)
    assert questions(dry) == found
    dry.close()
    traffic = [network.traffic(i) for i in range(parties)]
    assert [of_party.bytes_sent for of_party in traffic] == list(dry.sent)
    assert max(of_party.rounds for of_party in traffic) == dry.rounds
    assert dry.shared_cells > 60 and dry.seconds > 0 and len(dry.marks) == 4


def questions(oracle: MarginalOracle) -> list[object]:
    return [oracle.total(SMALL), *work(oracle)]
