"""What a dry run counts is what a run sends, to the byte and the round."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.backend import BACKEND
from mpc_protocols.backends.shamir.oracle import ROLES, contribute
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.functionality import Clique, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll, PresumedRun
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.trio_run import small_groups
from tests.worlds import serving
from tests.worlds.questions import total_and_work
from tests.worlds.tables import CONTRIBUTORS, PARTS, counter, facts

SIZES = {"a": 9, "b": 11, "c": 30}
MIXED = [Fraction(4), Fraction(4_000_000), Fraction(9)]  # the second is drawn in two parts
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]


def every_step(oracle: MarginalOracle, of: StudyFacts) -> None:
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
def test_a_dry_run_takes_the_forms_of_the_run(
    computing: int, latency_bytes: int, row_cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a round is worth; in rings of 32 and of 64 bits."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency_bytes)
    of = StudyFacts(SIZES, "add-remove", 1, row_cap, b"s" * 32)
    network = MemoryNetwork(computing + 2, computing, session_id=of.session)

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [np.arange(of.cells(clique)) // 8 * (row_cap // 100_000) for clique in cliques]

    def party(wire: Wire) -> None:
        if wire.me >= wire.computing:
            contribute(wire, of, counts)
        elif wire.me != of.leader:
            ROLES.follow(wire, of, counts, AllowAll())
        else:
            with ROLES.lead(wire, of, counts, AllowAll()) as oracle:
                every_step(oracle, of)

    network.run([party] * (computing + 2))
    everybody = computing + 2
    dry = BACKEND.dry_run(
        PresumedRun(of, lambda cliques: [everybody * one for one in counts(cliques)], computing, 2)
    )
    every_step(dry, of)
    dry.close()
    serving.check_traffic(network, dry)


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
                return total_and_work(oracle)
        if wire.me < computing:
            return ROLES.follow(wire, of, data[wire.me], AllowAll())
        contribute(wire, of, data[wire.me])
        return None

    with small_groups(8, 20, 40) if small else nullcontext():
        found = network.run([party] * parties)[1]
        dry = BACKEND.dry_run(PresumedRun(of, presumed, computing, contributors))
        assert total_and_work(dry) == found
        dry.close()
    serving.check_traffic(network, dry)
    assert dry.shared_cells > 60 and dry.seconds > 0 and len(dry.marks) == 4
