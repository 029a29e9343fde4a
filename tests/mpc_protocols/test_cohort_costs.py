"""What a dry run of cohorts counts is what the wire counts."""

from __future__ import annotations

from typing import Any

from mpc_protocols.backends.ideal.cohorts import IdealCohorts
from mpc_protocols.backends.replicated.cohort_costs import ReplicatedCohortsDryRun
from mpc_protocols.backends.replicated.cohorts import ReplicatedCohorts, answer, follow
from mpc_protocols.functionality import Cohorts, CohortsDryRun
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import StepRecorder
from tests.mpc_protocols.test_cohorts import COSTS, LEADER, SESSION, numbers, question, votes
from tests.worlds.tables import SMALL

PARTIES = 7


def asks(cohorts: Cohorts) -> None:
    cohorts.sum(question(b"sum", 700, 8000), range(PARTIES), SMALL)
    cohorts.sum(question(b"some", 33, 8000), (1, 4, 6), SMALL, cliques=[("a", "b")])
    cohorts.reveal(question(b"reveal", 2, 8000), (0, 3, 5), COSTS)


def choices(cohorts: Cohorts) -> None:
    listed = cohorts.popular(question(), range(PARTIES), 2, COSTS)
    cohorts.popular(question(), (0, 2, 3, 4, 6), 2, COSTS, listed)
    cohorts.popular(question(b"none"), (2, 3, 5), 9, COSTS)


def test_rounds_and_bytes_are_those_of_the_wire() -> None:
    for ask, vectors in ((asks, {k: numbers(k) for k in range(PARTIES)}), (choices, votes())):
        dry = ReplicatedCohortsDryRun(IdealCohorts(vectors, StepRecorder(), SESSION), PARTIES)
        ask(dry)
        dry.close()
        assert isinstance(dry, CohortsDryRun) and dry.seconds > 0

        def party(wire: Wire, ask: Any = ask, vectors: Any = vectors) -> tuple[int, int]:
            if wire.me == LEADER:
                with ReplicatedCohorts(wire, vectors[wire.me], range(PARTIES), StepRecorder()) as cohorts:
                    ask(cohorts)
            elif wire.me < 3:
                follow(wire, vectors[wire.me], range(PARTIES), StepRecorder(), LEADER)
            else:
                answer(wire, vectors[wire.me], LEADER, StepRecorder())
            return wire.traffic().rounds, wire.traffic().bytes_sent

        found = MemoryNetwork(PARTIES, 3, session_id=SESSION).run([party] * PARTIES)
        assert [sent for _, sent in found] == list(dry.sent)
        assert max(rounds for rounds, _ in found) == dry.rounds
