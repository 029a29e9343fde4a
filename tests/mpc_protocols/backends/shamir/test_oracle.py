"""The oracle of `shamir` against `ideal` with 3 to 9 parties: contributors, levels, groups, wide keys; what
must stop a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.shamir.engine import ShamirEngine
from mpc_protocols.backends.shamir.oracle import ROLES, contribute
from mpc_protocols.engine.oracle import LeadingOracle
from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import LocalCounts, MarginalOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.trio_run import small_groups
from tests.mpc_protocols.backends.replicated.vertical.owners import partition
from tests.trio import Trio
from tests.worlds import serving
from tests.worlds.questions import levels_and_distances, several_picks, wide_keys, work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SIZES, counter, facts

Data = LocalCounts | None
TABLES = [*PARTS, *CONTRIBUTORS, *PARTS, *CONTRIBUTORS]


def serve(
    body: Callable[[LeadingOracle], Any], data: Sequence[Data], computing: int, *more: Any, **named: Any
) -> Any:
    """Run `body` at party 1 with the others following; data[i] is party i's. All opened counts are the same
    everywhere."""
    first, answer, *others = serving.serve(ROLES, contribute, computing, body, data, *more, **named)
    for follower in others:
        assert all(np.array_equal(*both) for both in zip(first, follower, strict=True))
    return answer


@pytest.mark.parametrize(
    ("computing", "contributors"), [(3, 0), (3, 4), (4, 1), (5, 0), (5, 2), (6, 0), (7, 1), (9, 0)]
)
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(computing: int, contributors: int) -> None:
    parts = TABLES[: computing + contributors]
    serving.answered_as_ideal(serve, parts, computing, ShamirEngine.dealers, computing)


def test_parties_without_data() -> None:
    data = [*[None] * 5, *map(counter, CONTRIBUTORS)]
    expected = work(IdealOracle(facts(), counter(np.concatenate(CONTRIBUTORS)), Recorder()))
    assert serve(work, data, 5) == expected


def test_candidates_in_several_groups() -> None:
    with small_groups(8, 20, 40):
        expected = work(IdealOracle(facts(), counter(np.concatenate(TABLES[:5])), Recorder()))
        assert serve(work, [counter(part) for part in TABLES[:5]], 5) == expected


def test_levels_and_distances() -> None:
    expected = levels_and_distances(IdealOracle(facts(), counter(np.concatenate(TABLES[:5])), Recorder()))
    assert serve(levels_and_distances, [counter(part) for part in TABLES[:5]], 5) == expected


def test_several_picks() -> None:
    expected = several_picks(IdealOracle(facts(), counter(np.concatenate(TABLES[:5])), Recorder()))
    assert serve(several_picks, [counter(part) for part in TABLES[:5]], 5) == expected


def test_large_row_bounds_take_keys_of_64_bits() -> None:
    of = facts(row_cap=40_000_000)
    expected = wide_keys(IdealOracle(of, counter(np.concatenate(TABLES[:5])), Recorder()))
    assert serve(wide_keys, [counter(part) for part in TABLES[:5]], 5, of) == expected


def test_noise_is_added() -> None:
    """At sigma 100 each of twelve cells is opened without noise with probability 0.004: all of six or more
    never."""

    def body(oracle: MarginalOracle) -> NDArray[np.int64]:
        return oracle.measure(oracle.prepare([("a", "b")]), Fraction(10_000))[0]

    found = [
        serve(body, [counter(part) for part in TABLES[:5]], 5, facts(session=bytes([n]) * 32)) for n in (1, 2)
    ]
    counts = counter(np.concatenate(TABLES[:5]))([("a", "b")])[0]
    for noisy in found:
        assert (noisy != counts).sum() > 6 and np.abs(noisy - counts).max() < 1500
    assert not np.array_equal(*found)


@pytest.mark.parametrize("refuser", [0, 1, 4])
def test_a_refused_budget_opens_nothing(refuser: int) -> None:
    serving.refused_by(serve, refuser, TABLES[:5], 5, 5)


def test_a_follower_that_sees_another_study_stops() -> None:
    of, other = facts(), facts(row_cap=99_999)

    def party(wire: Wire) -> Any:
        if wire.me == 1:
            with ROLES.lead(wire, of, counter(PARTS[1]), Recorder()) as oracle:
                return work(oracle)
        return ROLES.follow(wire, other if wire.me == 3 else of, counter(PARTS[0]), Recorder())

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(5, 5, session_id=of.session).run([party] * 5)


@pytest.mark.parametrize("computing", [2, 10])
def test_other_numbers_of_parties_are_refused(computing: int) -> None:
    with pytest.raises(StudyInvalid, match="3 to 9"):
        MemoryNetwork(computing, computing).run(
            [lambda wire: ROLES.follow(wire, facts(), None, Recorder())] * computing
        )


def test_a_contributor_without_columns_is_refused() -> None:
    of = partition(SIZES, {"a": 0, "b": 1, "c": 1, "d": 0}, "union", 10)

    def party(wire: Wire) -> None:
        if wire.me == 3:
            contribute(wire, facts(), VerticalData(of, None))

    with pytest.raises(DataRefused, match="neither computes nor owns columns"):
        MemoryNetwork(4, 3).run([party] * 4)


def job(wire: Wire, session: bytes) -> list[Any]:
    return serving.take_part(ROLES, wire, facts(session=session), counter(TABLES[wire.me]))


def test_five_processes_answer_like_the_ideal_oracle(five: Trio) -> None:
    session = bytes(range(32))
    expected = work(IdealOracle(facts(session=session), counter(np.concatenate(TABLES[:5])), Recorder()))
    assert five.run(job, session)[1] == [repr(expected)]


@pytest.mark.parametrize(("computing", "leader"), [(3, 2), (5, 3), (9, 8)])
def test_a_leader_that_holds_no_counts_is_refused(computing: int, leader: int) -> None:
    """The model's answers are subtracted from the leader's part."""
    of = replace(facts(), leader=leader)

    def party(wire: Wire) -> None:
        ROLES.lead(wire, of, None, Recorder()) if wire.me == leader else ROLES.follow(
            wire, of, None, Recorder()
        )

    with pytest.raises(StudyInvalid, match=f"Party {leader} cannot lead: on Shamir shares one of the first"):
        MemoryNetwork(computing, session_id=of.session).run([party] * computing)
