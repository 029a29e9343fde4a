"""The oracle of `pair` against `ideal`: horizontal and vertical data, contributors, groups, wide keys; what
must stop a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.pair.circuits import kept_cells
from mpc_protocols.backends.pair.circuits.kept_cells import MAX_KEPT
from mpc_protocols.backends.pair.engine import PairEngine
from mpc_protocols.backends.pair.oracle import ROLES, contribute
from mpc_protocols.backends.pair.transfers.asked_once import USES
from mpc_protocols.engine.noise import pools
from mpc_protocols.engine.oracle import LeadingOracle
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Level, LocalCounts, MarginalOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.trio_run import small_groups
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.trio import Trio
from tests.worlds import serving
from tests.worlds.questions import levels_and_distances, several_picks, wide_keys, work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SIZES, SMALL, counter, facts

Data = LocalCounts | VerticalData | None


def serve(body: Callable[[LeadingOracle], Any], data: Sequence[Data], *more: Any, **named: Any) -> Any:
    """Run `body` at party 1 with party 0 following; data[i] is party i's."""
    return serving.serve(ROLES, contribute, 2, body, data, *more, **named)[1]


@pytest.mark.parametrize("contributors", [0, 1, 4])
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(contributors: int) -> None:
    parts = [*PARTS[:2], *CONTRIBUTORS[:contributors]]
    serving.answered_as_ideal(serve, parts, 2, PairEngine.dealers)


def test_parties_without_data() -> None:
    data = [None, None, *map(counter, CONTRIBUTORS)]
    expected = work(IdealOracle(facts(), counter(np.concatenate(CONTRIBUTORS)), Recorder()))
    assert serve(work, data) == expected


def test_candidates_in_several_groups() -> None:
    with small_groups(8, 20, 40):
        expected = work(IdealOracle(facts(), counter(np.concatenate(PARTS[:2])), Recorder()))
        assert serve(work, [counter(part) for part in PARTS[:2]]) == expected


def test_levels_and_distances() -> None:
    expected = levels_and_distances(IdealOracle(facts(), counter(np.concatenate(PARTS[:2])), Recorder()))
    assert serve(levels_and_distances, [counter(part) for part in PARTS[:2]]) == expected


def test_several_picks() -> None:
    expected = several_picks(IdealOracle(facts(), counter(np.concatenate(PARTS[:2])), Recorder()))
    assert serve(several_picks, [counter(part) for part in PARTS[:2]]) == expected


def test_large_row_bounds_take_keys_of_64_bits() -> None:
    of = facts(row_cap=40_000_000)
    expected = wide_keys(IdealOracle(of, counter(np.concatenate(PARTS[:2])), Recorder()))
    assert serve(wide_keys, [counter(part) for part in PARTS[:2]], of) == expected


def vertical(
    population: Population, rows: int = 500
) -> tuple[Partition, dict[int, OwnRows], list[VerticalData]]:
    of = partition(SIZES, {"a": 0, "b": 1, "c": 1, "d": 0}, population, rows)
    tables = random_owners(SIZES, of, (0.8, 0.7), np.random.default_rng())
    return of, tables, [VerticalData(of, tables[owner]) for owner in (0, 1)]


@pytest.mark.parametrize("population", ["intersection", "union"])
def test_two_owners_and_nobody_else(population: Population) -> None:
    of, tables, data = vertical(population)
    expected = work(IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder()))
    assert serve(work, data) == expected


def distances_again_and_again(oracle: MarginalOracle) -> list[Any]:
    """What is asked of the same cells more often than they are asked for at once, beside new ones and other answers: cells
    that are first compared late, columns that come later, and back."""
    draw = np.random.default_rng(7)
    handles, sizes = oracle.prepare([("a", "b"), ("b", "c", "d"), ("d",)]), [12, 40, 2]
    found: list[Any] = [oracle.total(SMALL)]
    for number in range(USES + 3):
        if number == USES // 2:
            handles, sizes = [*handles, *oracle.prepare([("a", "c")])], [*sizes, 15]
        places = draw.permutation(len(handles))[: draw.integers(1, len(handles) + 1)]
        answers = [draw.integers(1, 90, sizes[place]) * (draw.random(sizes[place]) < 0.7) for place in places]
        told = oracle.distances(
            [handles[place] for place in places], [of.astype(float) for of in answers], SMALL
        )
        found.append(told.tolist())
    return found


@pytest.mark.parametrize("kept", [MAX_KEPT, 60, 0])
@pytest.mark.parametrize("population", ["intersection", "union", None])
def test_cells_that_are_kept_answer_as_the_ideal_oracle(
    population: Population | None, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of joined columns, and of contributors' counts."""
    monkeypatch.setattr(kept_cells, "MAX_KEPT", kept)
    if population is None:
        data: Sequence[Data] = [*map(counter, [*PARTS[:2], *CONTRIBUTORS[:2]])]
        truth = counter(np.concatenate([*PARTS[:2], *CONTRIBUTORS[:2]]))
    else:
        of, tables, data = vertical(population)
        truth = ideal_counts(of, tables, SIZES)
    expected = distances_again_and_again(IdealOracle(facts(), truth, Recorder()))
    assert serve(distances_again_and_again, data) == expected


def test_levels_of_two_owners() -> None:
    of, tables, data = vertical("union")
    levels = [Level("b2", "b", (0, 0, 1, 1)), Level("a2", "a", (0, 1, 0))]

    def body(oracle: MarginalOracle) -> list[Any]:
        handles = oracle.prepare([("a2", "b2"), ("c", "a2"), ("a", "b")], levels)
        return [list(x) for x in oracle.measure(handles, SMALL)]

    expected = body(IdealOracle(facts(), ideal_counts(of, tables, SIZES), Recorder()))
    assert serve(body, data) == expected


def test_noise_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The opened counts are the counts plus what the draws gave, which is not zero at sigma 100 in any of 36
    runs of cells."""
    drawn: dict[int, list[NDArray[np.uint32]]] = {0: [], 1: []}
    whole = pools.gaussian_noise  # type: ignore[attr-defined]

    def noted(gates: Any, *arguments: Any) -> Any:
        noise = whole(gates, *arguments)
        drawn[gates.link.me].append(noise)
        return noise

    monkeypatch.setattr(pools, "gaussian_noise", noted)

    def body(oracle: MarginalOracle) -> NDArray[np.int64]:
        return oracle.measure(oracle.prepare([("a", "b")]), Fraction(10_000))[0]

    found = serve(body, [counter(part) for part in PARTS[:2]])
    noise = (drawn[0][0] + drawn[1][0]).view(np.int32)
    np.testing.assert_array_equal(found, counter(np.concatenate(PARTS[:2]))([("a", "b")])[0] + noise)
    assert np.abs(noise).max() > 10


@pytest.mark.parametrize("refuser", [0, 1])
def test_a_refused_budget_opens_nothing(refuser: int) -> None:
    serving.refused_by(serve, refuser, PARTS[:2], 2)


def test_a_follower_that_sees_another_study_stops() -> None:
    of, other = facts(), facts(row_cap=99_999)

    def leader(wire: Wire) -> Any:
        with ROLES.lead(wire, of, counter(PARTS[1]), Recorder()) as oracle:
            return work(oracle)

    def follower(wire: Wire) -> Any:
        return ROLES.follow(wire, other, counter(PARTS[0]), Recorder())

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(2, 2, session_id=of.session).run([follower, leader])


def test_partitions_that_differ_stop_the_run() -> None:
    of, tables, data = vertical("union")
    changed = Partition(of.owners, of.columns, "intersection", {}, of.rows)
    with pytest.raises(ProtocolAborted):
        serve(work, [data[0], VerticalData(changed, tables[1])])


def test_three_computing_parties_are_refused() -> None:
    def party(wire: Wire) -> Any:
        return ROLES.follow(wire, facts(), None, Recorder())

    with pytest.raises(StudyInvalid, match="exactly two"):
        MemoryNetwork(3, 3).run([party] * 3)


def test_an_owner_that_only_contributes_is_refused() -> None:
    _, _, data = vertical("union")
    with pytest.raises(StudyInvalid, match="replicated"):
        MemoryNetwork(1, 1).run([lambda wire: contribute(wire, facts(), data[0])])


def job(wire: Wire, session: bytes) -> list[Any]:
    return serving.take_part(ROLES, wire, facts(session=session), counter(PARTS[wire.me]))


def test_two_processes_answer_like_the_ideal_oracle(two: Trio) -> None:
    session = bytes(range(32))
    expected = work(IdealOracle(facts(session=session), counter(np.concatenate(PARTS[:2])), Recorder()))
    assert two.run(job, session)[1] == [repr(expected)]
