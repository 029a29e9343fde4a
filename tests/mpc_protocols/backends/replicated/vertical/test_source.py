"""Shares of vertical marginals against the functionality in the clear: owners in every role, both
populations, any overlap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.replicated.vertical import orders, planner
from mpc_protocols.backends.replicated.vertical.contributor import VerticalContributor
from mpc_protocols.backends.replicated.vertical.planner import make_plan
from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.vertical.schedule import own_rows
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    facts,
    partition,
    random_owners,
    shared_marginals,
)

SIZES = {"a": 3, "b": 4, "c": 5, "d": 2, "e": 1, "f": 70, "g": 6, "h": 3}
PAIRS = list(combinations(SIZES, 2))
TRIPLES = list(combinations(SIZES, 3))
POPULATIONS: tuple[Population, ...] = ("intersection", "union")
SPLITS = {  # the owner of each column a .. h; computing parties are 0, 1, 2
    "two": (0, 0, 1, 1, 1, 0, 0, 1),
    "two, the other way round": (2, 0, 2, 2, 0, 0, 2, 2),
    "three": (0, 1, 2, 0, 1, 2, 0, 1),
    "two that only contribute": (3, 4, 3, 4, 3, 4, 3, 4),
    "one of each": (0, 3, 3, 0, 0, 3, 0, 3),
    "four": (0, 3, 0, 3, 4, 0, 1, 4),
    "five": (5, 3, 4, 3, 4, 0, 5, 6),
    "eight": (7, 1, 2, 3, 4, 5, 6, 0),
}


def check(of: Partition, tables: dict[int, OwnRows], batches: Sequence[Sequence[Clique]]) -> None:
    marginals, rows, _ = shared_marginals(SIZES, of, tables, batches)
    expected = ideal_counts(of, tables, SIZES)([clique for batch in batches for clique in batch])
    for clique, counts, ideal in zip(
        [c for batch in batches for c in batch], marginals, expected, strict=True
    ):
        np.testing.assert_array_equal(counts, ideal, str(clique))
    assert rows == [int(expected[0].sum())] * len(batches)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("form", ["as planned", "one-hot", "ordered"])
def test_all_pairs_then_some_triples(
    monkeypatch: pytest.MonkeyPatch, population: Population, split: str, form: str
) -> None:
    """Several row blocks and batches; the second request meets what the first has left. Every joint in either
    form."""
    monkeypatch.setattr(planner, "MAX_BLOCK_ROWS", 256)
    monkeypatch.setattr(orders, "BATCH", 20_000)
    if form != "as planned":
        monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: form == "ordered")
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), population, 700)
    tables = random_owners(SIZES, of, [0.8] * len(of.owners), np.random.default_rng(1))
    check(of, tables, [PAIRS, [*TRIPLES[::5], ("h", "f", "a")]])


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize(
    ("rows", "held"),
    [
        (60, ([], [])),
        (60, (range(30), range(30, 60))),
        (60, (range(60), range(60))),
        (60, ([7], range(60))),
        (1, ([0], [0])),
        (60, ([3], [3])),
        (60, ([], range(10))),
        (0, ([], [])),
        (65, (range(64), [64])),
        (60, (range(5, 20), range(10, 30))),
    ],
)
@pytest.mark.parametrize("owners", [(0, 1), (3, 2), (4, 3)])
def test_extreme_overlaps(
    population: Population, rows: int, held: tuple[Sequence[int], Sequence[int]], owners: tuple[int, int]
) -> None:
    """No common record, all common, one, nobody's rows (dummies), an empty table, an owner without records."""
    of = partition(SIZES, {name: owners[place % 2] for place, name in enumerate(SIZES)}, population, rows)
    tables = random_owners(SIZES, of, held, np.random.default_rng(0))
    check(
        of,
        tables,
        [[("a", "b"), ("f", "h"), ("a", "c"), ("f",), ("e",), ("b", "d", "f"), ("a", "b", "c", "d")]],
    )


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("owners", [(0, 1, 2), (1, 3, 4), (2, 0, 4, 3)])
def test_cliques_over_three_and_four_owners(population: Population, owners: tuple[int, ...]) -> None:
    of = partition(
        SIZES, {name: owners[place % len(owners)] for place, name in enumerate(SIZES)}, population, 300
    )
    tables = random_owners(SIZES, of, [0.7] * len(owners), np.random.default_rng(2))
    check(
        of,
        tables,
        [
            [("a", "b", "c"), ("a", "b", "c", "d"), ("g", "b", "e", "h", "d"), ("c", "f", "d")],
            [("b",), ("h", "g", "f")],
        ],
    )


@given(st.integers(0, 2**32), st.integers(2, 4), st.sampled_from(POPULATIONS), st.integers(1, 300))
@settings(max_examples=15, deadline=None)
def test_random_partitions(seed: int, owners: int, population: Population, rows: int) -> None:
    rng = np.random.default_rng(seed)
    computing = int(rng.integers(0, min(owners, 3) + 1))
    numbers = rng.permutation([*rng.permutation(3)[:computing], *range(3, 3 + owners - computing)])
    columns = {
        name: int(numbers[place]) if place < owners else int(rng.choice(numbers))
        for place, name in enumerate(SIZES)
    }
    of = partition(SIZES, columns, population, rows)
    tables = random_owners(
        SIZES, of, [float(share) for share in rng.choice([0.0, 0.1, 0.9, 1.0], owners)], rng
    )
    cliques = {
        frozenset(rng.choice(list(SIZES), int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(6)
    }
    check(of, tables, [[tuple(rng.permutation(sorted(clique)).tolist()) for clique in cliques if clique]])


@pytest.mark.parametrize("population", POPULATIONS)
def test_what_an_owner_or_the_study_refuses(population: Population) -> None:
    of = partition(SIZES, {name: place % 2 for place, name in enumerate(SIZES)}, population, 40)
    tables = random_owners(SIZES, of, [1.0, 1.0], np.random.default_rng(0))
    with pytest.raises(DataRefused, match="max_rows"):
        own_rows(VerticalData(of, tables[0]), facts(SIZES, row_cap=39), 0)
    assert own_rows(VerticalData(of, None), facts(SIZES), 2) is None
    for data, me in (
        (VerticalData(of, None), 0),
        (VerticalData(of, tables[0]), 2),
        (VerticalData(of, tables[0]), 1),
    ):
        with pytest.raises(DataRefused):
            own_rows(data, facts(SIZES), me)
    with pytest.raises(StudyInvalid):
        own_rows(VerticalData(of, tables[0]), facts({**SIZES, "more": 2}), 0)
    with pytest.raises(DataRefused, match="leave it out"):
        VerticalContributor(MemoryNetwork(4).wire(3), facts(SIZES), VerticalData(of, None))


@pytest.mark.parametrize("split", ["two", "three", "two that only contribute", "one of each"])
@pytest.mark.parametrize("by_permutation", [False, True])
def test_the_same_request_twice_shares_no_mask(
    monkeypatch: pytest.MonkeyPatch, split: str, by_permutation: bool
) -> None:
    """A request, and again for the same data: of all that a party receives no 16 bytes (4 or more elements, 8
    places of an order) come twice. False alarms: below 1e-9."""
    monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: by_permutation)
    of = partition(SIZES, dict(zip(SIZES, SPLITS[split], strict=True)), "intersection", 900)
    tables = random_owners(SIZES, of, [0.5] * len(of.owners), np.random.default_rng(1))
    frames: list[Frame] = []
    batch = [("a", "c"), ("f", "h"), ("a", "b"), ("g",), ("f", "c")]
    shared_marginals(SIZES, of, tables, [batch, batch], tap=frames.append)
    for receiver in range(3):
        payloads = [f.payload for f in frames if f.receiver == receiver and len(f.payload) >= 64]
        pieces = [
            payload[start : start + 16] for payload in payloads for start in range(0, len(payload) - 15, 16)
        ]
        assert len(set(pieces)) == len(pieces) > 100


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("population", POPULATIONS)
def test_counts_that_need_a_wider_ring(
    monkeypatch: pytest.MonkeyPatch, narrow: bool, population: Population
) -> None:
    """More rows than 2^16, all in one cell: one sum modulo 2^16 would be wrong; so the narrow ring takes two
    sections."""
    monkeypatch.setattr(planner, "ROUND", 0 if narrow else 1 << 40)
    sizes: dict[str, Any] = {"a": 2, "b": 2, "c": 100}
    rows = (1 << 16) + 1000
    of = partition(sizes, {"a": 0, "b": 1, "c": 0}, population, rows)
    assert make_plan(of, sizes, 3, [("b", "c")], False).element == (2 if narrow else 4)
    every = np.arange(rows)
    zeros = np.zeros(rows, np.uint8)
    tables = {0: OwnRows(every, {"a": zeros, "c": zeros}), 1: OwnRows(every, {"b": zeros})}
    marginals, counted, _ = shared_marginals(sizes, of, tables, [[("c", "b"), ("a", "c")]])
    assert counted == [rows]
    for marginal, ideal in zip(
        marginals, ideal_counts(of, tables, sizes)([("c", "b"), ("a", "c")]), strict=True
    ):
        np.testing.assert_array_equal(marginal, ideal)
