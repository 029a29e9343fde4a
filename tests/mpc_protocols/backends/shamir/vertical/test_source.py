"""Marginals of several owners' columns against the functionality in the clear: parties, owners, populations,
ranges of rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest

from mpc_protocols.backends.shamir.vertical import counts, plan, source
from mpc_protocols.backends.shamir.vertical.dealer import zero_shares
from mpc_protocols.backends.shamir.vertical.prime import Residues
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.block_plan import block_planner
from mpc_protocols.vertical.partition import OwnRows, Partition, ideal_counts
from mpc_protocols.wire import Wire
from parties.session.transport.frames import MAX_MESSAGE
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.mpc_protocols.backends.shamir.vertical.owners import held_marginals

SIZES = {"a": 2, "b": 5, "c": 3, "d": 4, "e": 7}
BATCHES: list[list[Clique]] = [
    [("c",)],
    [*combinations(SIZES, 2), ("e", "a", "b")],
    [("b", "e"), ("a", "c", "d"), ("e", "b", "d"), ("d",)],
]


def check(
    of: Partition,
    tables: dict[int, OwnRows],
    computing: int,
    batches: list[list[Clique]] = BATCHES,
    derived: bool = True,
) -> None:
    """The holders' parts add up to the counts; and what a blank run without any records sends is the same, if
    derived."""
    cliques = [clique for batch in batches for clique in batch]
    found, network = held_marginals(SIZES, of, tables, batches, computing)
    for clique, cells, wanted in zip(cliques, found, ideal_counts(of, tables, SIZES)(cliques), strict=True):
        np.testing.assert_array_equal(cells, wanted, err_msg=str(clique))
    if not derived:
        return
    nothing = {
        owner: OwnRows(np.empty(0, np.int64), {name: codes[:0] for name, codes in rows.codes.items()})
        for owner, rows in tables.items()
    }
    _, without = held_marginals(SIZES, of, nothing, batches, computing, blank=True)
    for party in range(network.parties):
        assert without.traffic(party) == network.traffic(party)


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize(
    ("computing", "owners"),
    [
        (3, (0, 1, 0, 1, 1)),
        (3, (2, 0, 1, 2, 0)),
        (4, (3, 1, 3, 3, 1)),
        (5, (0, 5, 0, 5, 5)),
        (5, (4, 1, 2, 4, 3)),
        (9, (8, 9, 10, 8, 9)),
    ],
)
def test_marginals_are_those_of_the_population(
    population: Population, computing: int, owners: tuple[int, ...]
) -> None:
    """Owners that compute, that evaluate nothing, that contribute; two to four of them."""
    of = partition(SIZES, dict(zip(SIZES, owners, strict=True)), population, 90)
    held = (0.8, 0.7, 0.9, 0.6)[: len(of.owners)]
    check(of, random_owners(SIZES, of, held, np.random.default_rng()), computing)


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("held", [(0.0, 0.5), (1.0, 1.0)])
@pytest.mark.parametrize("rows", [0, 1, 70])
def test_empty_and_full_tables(population: Population, held: tuple[float, float], rows: int) -> None:
    of = partition(SIZES, dict(zip(SIZES, (0, 1, 0, 1, 1), strict=True)), population, rows)
    check(of, random_owners(SIZES, of, held, np.random.default_rng()), 3)


def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of 37 rows at most."""
    monkeypatch.setattr(plan, "make_plan", block_planner(37, plan.estimate, plan._block_rows))


@pytest.mark.parametrize("population", ["intersection", "union"])
def test_rows_go_in_blocks_and_ranges_and_cells_in_batches(
    population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_ranges(monkeypatch)
    monkeypatch.setattr(plan, "MIN_BLOCK_ROWS", 1)
    monkeypatch.setattr(plan, "BLOCK_ELEMENTS", 200)
    monkeypatch.setattr(counts, "BATCH", 100)
    of = partition(SIZES, dict(zip(SIZES, (0, 1, 4, 1, 1), strict=True)), population, 100)
    made = plan.make_plan(of, SIZES, 4, [("a", "b"), ("b", "d")], False)
    assert len(made.row_ranges()) == 3 and len(made.row_ranges()[0]) > 1
    check(of, random_owners(SIZES, of, (0.9, 0.8, 0.7), np.random.default_rng()), 4)


@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("width", [1 << 16, 1 << 21, 1 << 22, 1 << 24])
def test_blocks_of_wide_joints_fit_a_message(population: Population, width: int) -> None:
    """Two columns of one owner, and one of another: a row of 2^24 columns is 32 MiB, 256 of them more than a
    message."""
    sizes = {"a": 1 << 8, "b": width >> 8, "c": 1}
    of = partition(sizes, {"a": 0, "b": 0, "c": 1}, population, 45_000)
    made = plan.make_plan(of, sizes, 5, [("a", "b", "c")], population == "union")
    widest = max(*map(made.input_width, made.inputs()), *made.multiplied(), 0)
    rows = max(stop - start for block in made.row_ranges() for start, stop in block)
    assert rows >= 1 and 2 * rows * widest <= MAX_MESSAGE // 8
    assert (rows == plan.MIN_BLOCK_ROWS) == (width == 1 << 16)


def test_each_range_has_zeros_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among five parties, over all ranges of all batches: the masks of parts have different numbers, alike at
    all evaluators."""
    short_ranges(monkeypatch)
    drawn: list[tuple[int, int]] = []

    def zeros(wire: Wire, streams: Mapping[int, KeyStream], number: int, cells: int) -> Residues:
        drawn.append((wire.me, number))
        return zero_shares(wire, streams, number, cells)

    monkeypatch.setattr(source, "zero_shares", zeros)
    of = partition(SIZES, dict(zip(SIZES, (0, 1, 4, 1, 1), strict=True)), "intersection", 100)
    check(of, random_owners(SIZES, of, (0.9, 0.8, 0.7), np.random.default_rng()), 5, BATCHES[1:], False)
    assert sorted(drawn) == [(me, number) for me in range(5) for number in range(2 * 3)]


def test_more_rows_than_a_range_takes() -> None:
    """All of 70,000 people in one cell: more than p."""
    of = partition(SIZES, dict(zip(SIZES, (0, 1, 0, 1, 1), strict=True)), "intersection", 70_000)
    everybody = np.arange(70_000)
    tables = {
        owner: OwnRows(everybody, {name: np.zeros(70_000, np.uint8) for name in of.of(owner)})
        for owner in of.owners
    }
    check(of, tables, 3, [[("a", "c"), ("a", "b")]])


def test_an_owners_own_cliques_are_split_where_that_is_less() -> None:
    of = partition({"a": 40, "b": 40, "c": 3}, {"a": 0, "b": 0, "c": 1}, "intersection", 10_000)
    sizes = {"a": 40, "b": 40, "c": 3}
    [table] = plan.make_plan(of, sizes, 5, [("a", "b")], False).products
    assert table.left.columns == ("b",) and table.right.restricted and table.right.parts[0].columns == ("a",)
    [table] = plan.make_plan(of, {**sizes, "b": 2, "a": 2}, 5, [("a", "b")], False).products
    assert table.left.columns == ("a", "b")
