"""Which cliques are counted in one table: greedily, within so many cells of one table and of all."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import OutOfResources
from mpc_protocols.functionality import Clique
from mpc_protocols.process.resources import free_memory
from parties.data.counting import counters
from parties.data.counting.counters import Counters, check_memory, unjoined_bytes
from tests.synth.oracles import codes_domain

sizes_of = st.lists(st.sampled_from([1, 2, 3, 10, 30]), min_size=2, max_size=8)
NO_LIMIT = 1 << 62


def one_by_one(sizes: dict[str, int], cliques: list[Clique], most: int) -> list[Clique]:
    """Every clique beside every union so far."""
    unions: list[set[str]] = []

    def cells(names: set[str]) -> int:
        return math.prod(sizes[name] for name in names)

    for clique in sorted(set(map(frozenset, cliques)), key=lambda q: (-cells(set(q)), sorted(q))):
        if any(clique <= union for union in unions):
            continue
        fitting = [
            (cells(set(clique) - union), place)
            for place, union in enumerate(unions)
            if cells(union | clique) <= most
        ]
        if fitting:
            unions[min(fitting)[1]] |= clique
        else:
            unions.append(set(clique))
    return [tuple(name for name in sizes if name in union) for union in unions]


@given(sizes_of, st.data(), st.sampled_from([0, 1, 30, 300, 1 << 17]))
def test_each_clique_joins_the_union_that_it_enlarges_least(
    sizes: list[int], data: st.DataObject, most: int
) -> None:
    domain = codes_domain(**{f"c{place}": size for place, size in enumerate(sizes)})
    sets = [q for degree in (1, 2, 3) for q in combinations(domain.names, degree)]
    cliques = data.draw(st.lists(st.sampled_from(sets), min_size=1, max_size=20))
    assert Counters(domain, cliques)._unions(cliques, most, NO_LIMIT) == one_by_one(
        domain.sizes, cliques, most
    )


def test_unions_are_smaller_where_all_tables_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = codes_domain(**{f"c{place:02d}": 10 for place in range(30)})
    cliques = list(combinations(domain.names, 2))
    codes = {name: np.random.default_rng(3).integers(0, 10, 500) for name in domain.names}

    def counted() -> tuple[int, int, list[np.ndarray]]:
        found = Counters(domain, cliques)
        found.add(codes)
        tables = found.tables
        return max(map(len, tables)), sum(table.size for table in tables.values()), found.counts(cliques)

    columns, cells, counts = counted()
    assert columns == 5
    monkeypatch.setattr(counters, "_ALL_CELLS", cells - 1)
    fewer_columns, fewer_cells, same = counted()
    assert fewer_columns < columns and fewer_cells < cells
    monkeypatch.setattr(counters, "_ALL_CELLS", 1)
    assert counted()[:2] == (2, 100 * len(cliques))  # each by itself: no clique is left out
    for one, other in zip(counts, same, strict=True):
        np.testing.assert_array_equal(one, other)
    for (a, b), found in zip(cliques, counts, strict=True):
        np.testing.assert_array_equal(found, np.bincount(codes[a] * 10 + codes[b], minlength=100))


def test_what_tables_too_large_to_be_joined_take_is_told_without_making_them() -> None:
    domain = codes_domain(**{f"c{place:02d}": 1000 for place in range(9)})
    pairs = list(combinations(domain.names, 2))
    unions = Counters(domain, pairs)._small_unions()
    assert sorted(unions) == pairs  # none joined: 36 tables of 8 MB
    assert unjoined_bytes(map(domain.cells, pairs)) == 4 * sum(map(domain.cells, unions)) == 144_000_000
    assert unjoined_bytes(map(domain.cells, pairs[:33])) == 0


def test_tables_that_the_machine_cannot_hold_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parties.data.counting.counters.free_memory", lambda: 250_000_000)
    check_memory([6000 * 6000], 1)
    with pytest.raises(OutOfResources, match=r"by 2 custodians takes 0\.3 GB of memory, .* has 0\.2 GB left"):
        check_memory([6000 * 6000], 2)
    check_memory([3000 * 3000], 50)  # these are joined to unions, which have a limit
    monkeypatch.setattr("parties.data.counting.counters.free_memory", lambda: None)
    check_memory([6000 * 6000], 1000)


def test_this_machine_says_how_much_memory_is_left() -> None:
    assert (free_memory() or 0) > 1 << 20
