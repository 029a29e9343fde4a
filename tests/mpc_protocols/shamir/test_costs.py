"""The cost functions are the wire's counters, to the byte, the message and the round."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import AllowAll
from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.pool import GAUSSIAN_ROWS, GUMBEL_ROWS, PoolModel
from mpc_protocols.engine.step_costs import FreshInputs
from mpc_protocols.functionality import Clique, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.memory_wire import Frame, MemoryNetwork
from mpc_protocols.public.rounded_answers import RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.shamir.backend import BACKEND
from mpc_protocols.shamir.engine import DEALERS
from mpc_protocols.shamir.oracle import ROLES, contribute
from mpc_protocols.shamir.steps import Group, StepCosts
from mpc_protocols.wire import Wire
from tests.mpc_protocols.replicated.trio_run import small_groups
from tests.worlds.questions import work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SMALL, counter, facts

SIZES = {"a": 9, "b": 11, "c": 30}
MIXED = [Fraction(4), Fraction(4_000_000), Fraction(9)]  # the second is drawn in two parts
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]


def whole_run(wire: Wire, row_cap: int) -> None:
    """Every kind of step, at the leader, another computing party or a contributor."""
    of = StudyFacts(SIZES, "add-remove", 1, row_cap, b"s" * 32)

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [np.arange(of.cells(clique)) * (row_cap // 100_000) for clique in cliques]

    if wire.me >= wire.computing:
        contribute(wire, of, counts)
    elif wire.me != of.leader:
        ROLES.follow(wire, of, counts, AllowAll())
    else:
        with ROLES.lead(wire, of, counts, AllowAll()) as oracle:
            handles = oracle.prepare(CLIQUES)
            oracle.measure(handles[:1], Fraction(100))
            answers = [np.full(of.cells(clique), 7.0) for clique in CLIQUES]
            answers[1][:100] = 0
            for _ in range(2):
                oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1))
            oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1), 2)
            oracle.measure(handles, MIXED)
            oracle.distances(handles, answers, Fraction(100))
            oracle.total(Fraction(100))


def groups_of(rounded: RoundedAnswers) -> list[Group]:
    return [
        Group(len(encode(of)), of.layout.sums(0, of.nonzero.astype(np.int64), np.int64)) for of in rounded
    ]


@pytest.mark.parametrize(
    ("computing", "latency_bytes", "row_cap"),
    [
        (3, 1, 100_000),
        (3, 1 << 40, 100_000),
        (4, LATENCY_BYTES, 100_000),
        (5, 1, 40_000_000),
        (7, 1 << 40, 100_000),
    ],
)
def test_costs_of_a_whole_run_are_the_counters(
    computing: int, latency_bytes: int, row_cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency_bytes)
    of = StudyFacts(SIZES, "add-remove", 1, row_cap, b"s" * 32)
    network = MemoryNetwork(computing + 2, computing, session_id=b"s" * 32)
    seen: list[Frame] = []
    network.tap = seen.append
    network.run([lambda wire: whole_run(wire, row_cap)] * (computing + 2))
    announced = [
        len(f.payload)
        for f in seen
        if f.sender == 1 and f.receiver == 0 and f.payload[:2] + f.payload[-1:] == b'{"}'
    ]
    requests = [len(f.payload) for f in seen if f.sender == 1 and f.receiver == computing]

    state = PublicState(of, DEALERS)
    run = StepCosts(computing, contributors=2, latency_bytes=latency_bytes)
    cells = [of.cells(clique) for clique in CLIQUES]
    gumbel_pool, gaussian_pool = PoolModel(GUMBEL_ROWS), PoolModel(GAUSSIAN_ROWS)
    run.prepare(announced[0], FreshInputs(requests[0], [sum(cells)]))
    handles = list(state.begin_prepare(CLIQUES, ()).handles)
    begun_measure = state.begin_measure(handles[:1], Fraction(100))
    of_100 = begun_measure.plan.samplers[0]
    run.measure(announced[1], [(of_100, cells[0])], gaussian_pool.take(of_100.digest, cells[0]))
    state.learn_counts(begun_measure, [np.arange(cells[0]) * (computing + 2) * (row_cap // 100_000)])
    answers = [np.full(count, 7.0) for count in cells]
    answers[1][:100] = 0
    for number, picks in ((2, 1), (3, 1), (4, 2)):
        begun, rounded = state.begin_select(
            handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1), picks
        )
        plan = begun.plan
        assert len(plan.contenders) == 3
        groups = groups_of(rounded)
        generated = gumbel_pool.take((plan.a, plan.ring_bits), picks * 3)
        lists = [3, 2] if picks == 2 else []
        run.select(announced[number], groups, plan, generated, lists)
        assert plan.ring_bits == (64 if row_cap > 100_000 else 32)
        state.learn_selection(begun, list(range(picks)))
    begun_measure = state.begin_measure(handles, MIXED)
    runs = [(of_run, sum(lengths)) for of_run, lengths in by_sampler(begun_measure.plan.samplers, cells)]
    assert max(len(of_run.parts) for of_run, _ in runs) > 1
    run.measure(announced[5], runs)
    state.learn_counts(begun_measure, [np.zeros(count, np.int64) for count in cells])
    begun_distances, rounded = state.begin_distances(handles, answers, Fraction(100))
    groups = groups_of(rounded)
    generated = gaussian_pool.take(of_100.digest, 3)
    run.distances(announced[6], groups, of_100, 3, begun_distances.answers.planes, generated)
    run.measure(announced[7], [(of_100, 1)], gaussian_pool.take(of_100.digest, 1))
    run.end(announced[8])
    traffic = [network.traffic(i) for i in range(computing + 2)]
    assert [of_party.messages_sent for of_party in traffic] == run.tally.messages
    assert [of_party.bytes_sent for of_party in traffic] == run.tally.sent
    assert max(of_party.rounds for of_party in traffic) == run.tally.rounds


@pytest.mark.parametrize(("computing", "contributors"), [(3, 1), (5, 1)])
@pytest.mark.parametrize("small", [False, True])
def test_a_dry_run_counts_what_the_run_sends(
    computing: int, contributors: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At tiny noise both give the same answers, so the same messages. small: candidates in several groups."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    parties = computing + contributors
    of, parts = facts(), [*PARTS, *CONTRIBUTORS][:parties]
    data = [counter(part) for part in parts]
    presumed: LocalCounts = counter(np.concatenate(parts))
    network = MemoryNetwork(parties, computing, session_id=of.session)

    def party(wire: Wire) -> object:
        if wire.me == 1:
            with ROLES.lead(wire, of, data[1], AllowAll()) as oracle:
                return questions(oracle)
        if wire.me < computing:
            return ROLES.follow(wire, of, data[wire.me], AllowAll())
        contribute(wire, of, data[wire.me])
        return None

    with small_groups(8, 20, 40) if small else nullcontext():
        found = network.run([party] * parties)[1]
        dry = BACKEND.dry_run(of, presumed, computing, contributors, None)
        assert questions(dry) == found
        dry.close()
    traffic = [network.traffic(i) for i in range(parties)]
    assert [of_party.bytes_sent for of_party in traffic] == list(dry.sent)
    assert max(of_party.rounds for of_party in traffic) == dry.rounds
    assert dry.shared_cells > 60 and dry.seconds > 0 and len(dry.marks) == 4


def questions(oracle: MarginalOracle) -> list[object]:
    return [oracle.total(SMALL), *work(oracle)]
