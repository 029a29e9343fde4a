"""Marginals of two owners' columns against the functionality in the clear: any two owners, either population,
both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.blank import BlankOperations
from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.dealing.operations import Operations
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.backends.additive.vertical import plan as planning
from mpc_protocols.backends.additive.vertical.marginals import JoinedMarginals
from mpc_protocols.backends.additive.vertical.plan import Order, make_plan
from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Level
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.ordered_sums import OwnerShuffle
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from tests.mpc_protocols.backends.additive.dealt_run import Ran, run_three
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    facts,
    partition,
    random_owners,
)

pytestmark = pytest.mark.usefixtures("crypten")

SIZES = {"a": 2, "b": 5, "c": 3, "d": 4, "e": 7}
CLIQUES: list[Clique] = [
    *[(c,) for c in SIZES],
    *combinations(SIZES, 2),
    ("e", "a", "b"),
    ("b", "e"),
    ("a", "c", "d"),
    ("e", "b", "d"),
]
CHI_SQUARE = 415
"""Of 256 bins, 255 degrees of freedom: uniform bytes exceed it with probability 1e-9 (Wilson and Hilferty)."""


def split(
    population: Population,
    rows: int,
    held: tuple[float, float] = (0.9, 0.8),
    owners: tuple[int, int] = (0, 1),
) -> tuple[Partition, dict[int, OwnRows]]:
    first, second = owners
    of = partition(SIZES, {"a": first, "b": second, "c": first, "d": second, "e": second}, population, rows)
    return of, random_owners(SIZES, of, held, np.random.default_rng())


def shared(
    of: Partition,
    owned: dict[int, OwnRows],
    cliques: Sequence[Clique] = CLIQUES,
    levels: Sequence[Level] = (),
    network: MemoryNetwork | None = None,
    operations: Callable[[Link], Operations] = CrypTenOperations,
) -> Ran[list[NDArray[Any]]]:
    """Every party's shares of the marginals."""

    def body(gates: AdditiveGates) -> list[NDArray[Any]]:
        source = JoinedMarginals(gates, facts(SIZES), VerticalData(of, owned.get(gates.link.me)))
        source.share(cliques, levels, b"asked")
        return [source.shared(clique) for clique in cliques]

    return run_three(body, network=network, operations=operations)


def check(of: Partition, owned: dict[int, OwnRows], cliques: Sequence[Clique] = CLIQUES) -> None:
    """The shares add up to the counts, and a blank run without any records sends the same messages."""
    ran = shared(of, owned, cliques)
    wanted = ideal_counts(of, owned, SIZES)(cliques)
    for clique, first, second, third, cells in zip(cliques, *ran.results, wanted, strict=True):
        assert first.dtype == np.uint32 and not third.any()
        np.testing.assert_array_equal(first + second, cells, err_msg=str(clique))
    nothing = {
        owner: OwnRows(np.empty(0, np.int64), {name: codes[:0] for name, codes in rows.codes.items()})
        for owner, rows in owned.items()
    }
    assert (
        shared(of, nothing, cliques, network=BlankNetwork(3, 3), operations=BlankOperations).traffic
        == ran.traffic
    )


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("owners", [(0, 1), (0, 2), (1, 2), (2, 0)])
def test_marginals_are_those_of_the_population_whoever_owns(
    population: Population, owners: tuple[int, int]
) -> None:
    check(*split(population, 300, owners=owners))


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("held", [(1.0, 0.3), (0.0, 0.5), (0.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("rows", [0, 1, 70])
def test_any_overlap(population: Population, held: tuple[float, float], rows: int) -> None:
    check(*split(population, rows, held))


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("owners", [(0, 1), (0, 2)])
def test_long_tables_are_cut_and_lifted(
    population: Population, owners: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretches of 1,000 rows in blocks of some, orders in pieces of a column, several to a batch."""
    monkeypatch.setattr(planning, "STRETCH", 1000)
    monkeypatch.setattr(planning, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(planning, "BATCH", 5_000)
    monkeypatch.setattr(planning, "LIFT_BYTES", 1)
    of, owned = split(population, 2500, owners=owners)
    plan = make_plan(of, SIZES, CLIQUES)
    assert plan.ring is np.uint16 and len(list(plan.stretches())) == 3
    assert len(list(plan.blocks(range(1000)))) > 1
    assert len(plan.orders) > 1 if population == "intersection" else plan.products
    check(of, owned)


def test_a_table_over_joints_of_both_owners_may_be_an_order() -> None:
    of, owned = split("intersection", 3000)
    cliques: list[Clique] = [("a", "b", "d", "e"), ("c", "e", "b", "d")]
    [order] = make_plan(of, SIZES, cliques).orders
    assert order == Order(1, ("b", "d", "e"), (("a",), ("c",)))
    check(of, owned, cliques)


def test_columns_travel_once() -> None:
    """Those of a joint that another one contains are sums of its own."""
    of, _ = split("intersection", 3000)
    plan = make_plan(of, SIZES, [("a", "b"), ("a", "d"), ("a", "c", "b"), ("d",)])
    assert plan.columns == ((("a", "c"),), (("b",), ("d",)))
    assert not plan.orders and plan.products == (
        (("a",), ("b",)), (("a",), ("d",)), (("a", "c"), ("b",)), ((), ("d",))
    )  # fmt: skip


def test_levels_of_two_owners() -> None:
    of, owned = split("union", 200)
    levels = [Level("e2", "e", (0, 0, 0, 1, 1, 1, 1)), Level("a1", "a", (0, 0))]
    cliques: list[Clique] = [("e2", "a"), ("c", "e2"), ("a1", "b"), ("e2",)]
    ran = shared(of, owned, cliques, levels)
    coarse = {"e2": np.array(levels[0].bins), "a1": np.array(levels[1].bins)}
    fine = ideal_counts(of, owned, SIZES)([("e", "a"), ("c", "e"), ("a", "b"), ("e",)])
    by_level = np.eye(2, dtype=np.int64)[coarse["e2"]]
    wanted = [
        by_level.T @ fine[0].reshape(7, 2),
        fine[1].reshape(3, 7) @ by_level,
        fine[2].reshape(2, 5).sum(axis=0),
        fine[3] @ by_level,
    ]
    for first, second, cells in zip(*ran.results[:2], wanted, strict=True):
        np.testing.assert_array_equal(first + second, cells.reshape(-1))


def test_what_travels_is_uniform_and_the_dealer_receives_nothing() -> None:
    """Columns of nearly nothing but zeros, and orders of rows of which nobody holds any. All bytes of each
    way, 1e-9 each."""
    of, owned = split("intersection", 30_000, (0.0, 0.0))
    assert make_plan(of, SIZES, CLIQUES).orders
    ran = shared(of, owned)
    assert not [frame for frame in ran.frames if frame.receiver == 2]
    for way in ((0, 1), (1, 0), (2, 0)):
        sent = b"".join(
            f.payload for f in ran.frames if (f.sender, f.receiver) == way and not is_an_order(f.payload)
        )
        bins = np.bincount(np.frombuffer(sent, np.uint8), minlength=256)
        assert ((bins - len(sent) / 256) ** 2).sum() * 256 / len(sent) < CHI_SQUARE, way


def is_an_order(payload: bytes) -> bool:
    """Places: a permutation has no uniform bytes (`test_group_by` has its law)."""
    places = np.frombuffer(payload[: len(payload) // 2 * 2], np.uint16)
    return len(places) > 30_000 and len(np.unique(places[:30_000])) == 30_000


@pytest.mark.parametrize("bad", ["beyond", "twice"])
def test_an_owner_that_names_a_false_place_stops_the_run(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OwnerShuffle.__init__

    def lying(self: OwnerShuffle, *arguments: Any) -> None:
        whole(self, *arguments)
        self.places[0] = 60_000 if bad == "beyond" else self.places[1]

    monkeypatch.setattr(OwnerShuffle, "__init__", lying)
    of, owned = split("intersection", 3000)
    with pytest.raises(ProtocolAborted, match=f"named a place.* {bad}"):
        shared(of, owned)


def test_no_mask_is_used_twice() -> None:
    """The same tables asked for twice in a run, and in another session of the same keys: no block of 16 bytes
    comes again."""
    of, owned = split("intersection", 600)
    networks = [MemoryNetwork(3, 3) for _ in range(2)]
    networks[1].share_keys(networks[0])

    def body(gates: AdditiveGates) -> None:
        source = JoinedMarginals(gates, facts(SIZES), VerticalData(of, owned.get(gates.link.me)))
        for _ in range(2):
            source.share([("a", "b"), ("b", "d", "e")], (), b"asked")

    seen = [f.payload for network in networks for f in run_three(body, network=network).frames]
    blocks = [p[at : at + 16] for p in seen for at in range(0, len(p) - 15, 16)]
    assert len(blocks) == len(set(blocks)) > 1000


def test_others_than_two_computing_parties_are_refused() -> None:
    of, _ = split("intersection", 10)
    for owners in ({**of.columns, "e": 2}, {name: owner + 2 for name, owner in of.columns.items()}):
        with pytest.raises(StudyInvalid, match='backend = "replicated"'):
            planning.check_owners(partition(SIZES, owners, "intersection", 10))


def test_rows_that_do_not_fit_are_refused_before_anything_is_sent() -> None:
    of, owned = split("intersection", 10, (1.0, 1.0))
    for data in ({0: owned[0]}, owned | {2: owned[0]}):
        network = MemoryNetwork(3, 3)
        with pytest.raises(DataRefused):
            shared(of, data, network=network)
