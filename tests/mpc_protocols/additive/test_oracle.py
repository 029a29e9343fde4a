"""AdditiveOracle against IdealOracle: contributors, groups, wide keys, real processes; and what must stop a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.additive.engine import DEALERS
from mpc_protocols.additive.oracle import AdditiveOracle, contribute, follow
from mpc_protocols.errors import BudgetRefused, CosynthError, StudyInvalid
from mpc_protocols.functionality import LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.ideal.oracle import IdealOracle
from mpc_protocols.memory_wire import Frame, MemoryNetwork
from mpc_protocols.partition import VerticalData
from mpc_protocols.wire import Wire
from tests.mpc_protocols.replicated.vertical.owners import partition
from tests.trio import Trio
from tests.worlds.guards import Recorder
from tests.worlds.questions import work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SIZES, counter, facts

pytestmark = pytest.mark.usefixtures("crypten")

TABLES = [*PARTS[:3], *CONTRIBUTORS]


def serve(
    body: Callable[[AdditiveOracle], Any],
    data: Sequence[LocalCounts | None],
    of: StudyFacts | None = None,
    guards: Sequence[Recorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
) -> Any:
    """Run `body` at party 1 with party 0, the dealer and contributors; data[i] is party i's. All see the same releases."""
    of = of or facts()
    guards = guards or [Recorder() for _ in range(3)]
    network = MemoryNetwork(len(data), 3, tap=tap, session_id=of.session, patience_s=60)

    def party(wire: Wire) -> Any:
        mine = data[wire.me]
        if wire.me == of.leader:
            with AdditiveOracle(wire, of, mine, guards[wire.me]) as oracle:
                return body(oracle)
        if wire.me < 3:
            return follow(wire, of, mine, guards[wire.me])
        assert mine is not None
        return contribute(wire, of, mine)

    results = network.run([party] * len(data))
    assert all(np.array_equal(*both) for both in zip(results[0], results[2], strict=True))
    return results[of.leader]


@pytest.mark.parametrize("contributors", [0, 3])
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(contributors: int) -> None:
    parts = TABLES[: 3 + contributors]
    ideal_guard, guards = Recorder(), [Recorder() for _ in range(3)]
    ideal = IdealOracle(facts(), counter(np.concatenate(parts)), ideal_guard, dealers=DEALERS)
    expected = work(ideal)
    answers, transcript = serve(
        lambda oracle: (work(oracle), oracle.state.transcript),
        [counter(part) for part in parts],
        guards=guards,
    )
    assert (answers, transcript) == (expected, ideal.state.transcript)
    for guard in guards:
        assert guard.asked == ideal_guard.asked


def test_large_row_bounds_take_keys_of_64_bits() -> None:
    of = facts(row_cap=40_000_000)

    def body(oracle: MarginalOracle) -> list[int]:
        handles = oracle.prepare([("a", "b"), ("b", "c"), ("c", "d")])
        answers = [np.full(n, 650.0 / n) for n in (12, 20, 10)]
        found = []
        for favourite in range(3):
            weights = [Fraction(50 if q == favourite else 1) for q in range(3)]
            found.extend(oracle.select(handles, answers, weights, [Fraction(0)] * 3, Fraction(2)))
        return found

    expected = body(IdealOracle(of, counter(np.concatenate(TABLES[:3])), Recorder()))
    assert serve(body, [counter(part) for part in TABLES[:3]], of) == expected


@pytest.mark.parametrize("refuser", [0, 1, 2])
def test_a_refused_budget_opens_nothing(refuser: int) -> None:
    guards = [Recorder(0 if me == refuser else None) for me in range(3)]
    with pytest.raises(CosynthError) as failure:
        serve(work, [counter(part) for part in TABLES[:3]], guards=guards)
    assert isinstance(failure.value, BudgetRefused)


@pytest.mark.parametrize("computing", [2, 4])
def test_other_numbers_of_parties_are_refused(computing: int) -> None:
    with pytest.raises(StudyInvalid, match="Two parties and a dealer make three"):
        MemoryNetwork(computing, computing).run(
            [lambda wire: follow(wire, facts(), None, Recorder())] * computing
        )


def test_a_dealer_does_not_lead() -> None:
    of = replace(facts(), leader=2)

    def party(wire: Wire) -> None:
        AdditiveOracle(wire, of, None, Recorder()) if wire.me == 2 else follow(wire, of, None, Recorder())

    with pytest.raises(StudyInvalid, match="The dealer cannot lead"):
        MemoryNetwork(3, session_id=of.session, patience_s=5).run([party] * 3)


def test_split_columns_are_refused() -> None:
    of = partition(SIZES, {"a": 0, "b": 1, "c": 1, "d": 0}, "union", 10)
    with pytest.raises(StudyInvalid, match="horizontal"):
        MemoryNetwork(1, 1).run([lambda wire: contribute(wire, facts(), VerticalData(of, None))])


def job(wire: Wire, session: bytes) -> list[Any]:
    of, mine = facts(session=session), counter(TABLES[wire.me])
    if wire.me == of.leader:
        with AdditiveOracle(wire, of, mine, Recorder()) as oracle:
            return [repr(work(oracle))]
    follow(wire, of, mine, Recorder())
    return []


def test_three_processes_answer_like_the_ideal_oracle(trio: Trio) -> None:
    session = bytes(range(32))
    expected = work(IdealOracle(facts(session=session), counter(np.concatenate(TABLES[:3])), Recorder()))
    assert trio.run(job, session)[1] == [repr(expected)]
