"""The oracle of `additive` against `ideal`: contributors, groups, wide keys, real processes; and what must
stop a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.additive.engine import AdditiveEngine
from mpc_protocols.backends.additive.oracle import ROLES, contribute
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.engine.oracle import LeadingOracle
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import LocalCounts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.trio import Trio
from tests.worlds import serving
from tests.worlds.questions import wide_keys, work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SIZES, counter, facts

pytestmark = pytest.mark.usefixtures("crypten")

TABLES = [*PARTS[:3], *CONTRIBUTORS]


def serve(
    body: Callable[[LeadingOracle], Any],
    data: Sequence[LocalCounts | VerticalData | None],
    *more: Any,
    **named: Any,
) -> Any:
    """Run `body` at party 1 with party 0, the dealer and contributors; data[i] is party i's. All see the same
    releases."""
    opened, answer, told = serving.serve(ROLES, contribute, 3, body, data, *more, **named)
    assert all(np.array_equal(*both) for both in zip(opened, told, strict=True))
    return answer


@pytest.mark.parametrize("contributors", [0, 3])
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(contributors: int) -> None:
    parts = TABLES[: 3 + contributors]
    serving.answered_as_ideal(serve, parts, 3, AdditiveEngine.dealers)


def test_large_row_bounds_take_keys_of_64_bits() -> None:
    of = facts(row_cap=40_000_000)
    expected = wide_keys(IdealOracle(of, counter(np.concatenate(TABLES[:3])), Recorder()))
    assert serve(wide_keys, [counter(part) for part in TABLES[:3]], of) == expected


@pytest.mark.parametrize("refuser", [0, 1, 2])
def test_a_refused_budget_opens_nothing(refuser: int) -> None:
    serving.refused_by(serve, refuser, TABLES[:3], 3)


@pytest.mark.parametrize("computing", [2, 4])
def test_other_numbers_of_parties_are_refused(computing: int) -> None:
    with pytest.raises(StudyInvalid, match="Two parties and a dealer make three"):
        MemoryNetwork(computing, computing).run(
            [lambda wire: ROLES.follow(wire, facts(), None, Recorder())] * computing
        )


def test_a_dealer_does_not_lead() -> None:
    of = replace(facts(), leader=2)

    def party(wire: Wire) -> None:
        ROLES.lead(wire, of, None, Recorder()) if wire.me == 2 else ROLES.follow(wire, of, None, Recorder())

    with pytest.raises(StudyInvalid, match="The dealer cannot lead"):
        MemoryNetwork(3, session_id=of.session).run([party] * 3)


def joined(
    population: Population, owners: tuple[int, int] = (0, 1), rows: int = 500
) -> tuple[Partition, dict[int, OwnRows]]:
    first, second = owners
    of = partition(SIZES, {"a": first, "b": second, "c": second, "d": first}, population, rows)
    return of, random_owners(SIZES, of, (0.8, 0.7), np.random.default_rng(7))


@pytest.mark.parametrize("owners", [(0, 1), (1, 2)])
@pytest.mark.parametrize("population", ["intersection", "union"])
def test_columns_of_two_owners(population: Population, owners: tuple[int, int]) -> None:
    of, owned = joined(population, owners)
    expected = work(IdealOracle(facts(), ideal_counts(of, owned, SIZES), Recorder()))
    assert serve(work, [VerticalData(of, owned.get(number)) for number in range(3)]) == expected


def test_partitions_that_differ_stop_the_run() -> None:
    of, owned = joined("union")
    changed = Partition(of.owners, of.columns, "intersection", {}, of.rows)
    data = [VerticalData(changed if number == 0 else of, owned.get(number)) for number in range(3)]
    with pytest.raises(ProtocolAborted):
        serve(work, data)


@pytest.mark.parametrize("by", [1, -1])
def test_masked_columns_of_another_size_stop_the_run(by: int) -> None:
    """What one owner sends the other; the largest message of the run."""
    of, owned = joined("intersection")
    longest = 2 * 500 * (SIZES["a"] + SIZES["d"])

    def grown(payload: bytes) -> bytes:
        return (payload + b"0" if by > 0 else payload[:-1]) if len(payload) == longest else payload

    with pytest.raises(ProtocolAborted):
        serve(
            lambda oracle: oracle.prepare([("a", "b"), ("d", "c")]),
            [VerticalData(of, owned.get(number)) for number in range(3)],
            bend=lambda way, number, payload: grown(payload),
        )


def test_owners_that_do_not_compute_are_refused() -> None:
    of, owned = joined("union", (2, 3))
    with pytest.raises(StudyInvalid, match='backend = "replicated"'):
        MemoryNetwork(1, 1).run([lambda wire: contribute(wire, facts(), VerticalData(of, owned[3]))])
    with pytest.raises(StudyInvalid, match='backend = "replicated"'):
        serve(work, [VerticalData(of, owned.get(number)) for number in range(3)])


def job(wire: Wire, session: bytes) -> list[Any]:
    return serving.take_part(ROLES, wire, facts(session=session), counter(TABLES[wire.me]))


def vertical_job(wire: Wire, session: bytes) -> list[Any]:
    split, owned = joined("intersection", (0, 2), 3000)
    mine = VerticalData(split, owned.get(wire.me))
    return serving.take_part(ROLES, wire, facts(session=session), mine)


def test_three_processes_join_the_columns_of_two(trio: Trio) -> None:
    """Owners are the first, and the one that holds no shares; orders of rows among what is computed."""
    session = bytes(range(1, 33))
    split, owned = joined("intersection", (0, 2), 3000)
    expected = work(IdealOracle(facts(session=session), ideal_counts(split, owned, SIZES), Recorder()))
    assert trio.run(vertical_job, session)[1] == [repr(expected)]


def test_three_processes_answer_like_the_ideal_oracle(trio: Trio) -> None:
    session = bytes(range(32))
    expected = work(IdealOracle(facts(session=session), counter(np.concatenate(TABLES[:3])), Recorder()))
    assert trio.run(job, session)[1] == [repr(expected)]
