"""Bins: nested, each value in exactly one, integers in and integers out, and nothing but released numbers
decides them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.algorithms.mosaic.bins import SIZES, is_ordered, partitions
from synth.algorithms.mosaic.candidates import Grid, candidates, levels_of, prices
from synth.budget.prices import two_thirds
from synth.domain import Categorical, Codes, Domain, Numeric
from synth.mrf.levels import bins_within
from synth.workload import Workload

COUNTS = st.lists(st.integers(-500, 5000), min_size=1, max_size=120)


@given(COUNTS, st.integers(1, 10**6), st.booleans())
def test_partitions_are_nested_and_put_each_value_in_one_bin(
    counts: list[int], sigma2: int, ordered: bool
) -> None:
    found = partitions(counts, Fraction(sigma2), ordered=ordered)
    sizes = [max(bins) + 1 for bins in found]
    assert sizes == sorted(set(sizes)) and all(1 < size < len(counts) for size in sizes)
    assert all(size in SIZES for size in sizes[:-1])
    for bins in found:
        assert len(bins) == len(counts) and set(bins) == set(range(max(bins) + 1))
        assert not ordered or list(bins) == sorted(bins), "bins of ordered codes are intervals"
    levels = [Level(f"level {size}", "x", bins) for size, bins in zip(sizes, found, strict=True)]
    for coarse, fine in pairwise(levels):
        bins_within(coarse, fine)


@given(COUNTS, st.integers(1, 10**6), st.booleans())
def test_partitions_depend_on_released_integers_alone(counts: list[int], sigma2: int, ordered: bool) -> None:
    """No float enters: equal integers give equal bins whatever their type, and scaling everything changes
    nothing."""
    once = partitions(counts, Fraction(sigma2), ordered=ordered)
    assert partitions(tuple(counts), Fraction(2 * sigma2, 2), ordered=ordered) == once
    big = 10**30
    assert partitions([big * count for count in counts], sigma2 * Fraction(big) ** 2, ordered=ordered) == once


def test_heavy_bins_are_split_at_their_median() -> None:
    counts = [10, 10, 10, 70, 50, 20, 20, 10]
    assert partitions(counts, Fraction(1), ordered=True)[0] == (0, 0, 0, 0, 1, 1, 1, 1)
    by_count = partitions(counts, Fraction(1), ordered=False)[0]  # 70 + 50 against the others
    assert by_count == (1, 1, 1, 0, 0, 1, 1, 1)


def test_bins_below_three_deviations_are_not_split() -> None:
    assert partitions([100, 100, 100, 100], Fraction(200**2), ordered=True) == []
    assert len(partitions([100, 100, 100, 100], Fraction(100**2), ordered=True)) == 1
    assert partitions([-50, -50, -50], Fraction(1), ordered=True) == []


def test_numbers_and_codes_have_an_order_and_categories_have_none() -> None:
    assert is_ordered(Codes(5)) and is_ordered(Numeric(0, 10, 5)) and not is_ordered(Categorical(("a", "b")))


def test_a_level_never_takes_the_name_of_a_column() -> None:
    domain = Domain(("x", "x/2", "x/2'"), (Codes(4), Codes(4), Codes(4)))
    counts = {name: [100, 90, 80, 70] for name in domain.names}
    levels = levels_of(domain, counts, dict.fromkeys(domain.names, Fraction(1)))
    names = [level.name for of in levels.values() for level in of]
    assert len(set(names)) == len(names) and not set(names) & set(domain.names)


def test_two_thirds_is_the_power_rounded_down() -> None:
    for x in (1, 2, 7, 8, 27, 1000, 10**12 + 1):
        for unit in (1, 3, 64):
            found = two_thirds(x, unit)
            assert found <= (x / unit) ** (2 / 3) * (1 + 1e-12)
            assert found + Fraction(1, 1 << 20) > (x / unit) ** (2 / 3) * (1 - 1e-12)


DOMAIN = Domain(("age", "sex", "town", "work"), (Codes(100), Codes(2), Codes(40), Codes(9)))
LEVELS = levels_of(
    DOMAIN,
    {"age": [50] * 100, "sex": [10, 20], "town": [9000, *[30] * 39], "work": [5, 9, 3, 7, 1, 8, 4, 6, 2]},
    dict.fromkeys(DOMAIN.names, Fraction(1, 4)),
)
GRID = Grid(DOMAIN, LEVELS)
WORKLOAD = Workload.from_spec({"degree": 3}, DOMAIN)


def test_candidates_keep_their_budget_and_are_as_fine_as_it_allows() -> None:
    found = candidates(GRID, WORKLOAD.closure, WORKLOAD.weights, (16, 128, 1024))
    assert len({c.clique for c in found}) == len(found)
    for candidate in found:
        if len(candidate.columns) > 1:
            assert candidate.cells <= 1024
            assert all(GRID.sizes[name] <= 32 for name in candidate.clique), "wide columns come in bins"
        else:
            assert candidate.clique == candidate.columns
        assert candidate.weight == WORKLOAD.weights[candidate.columns]
    pair = GRID.within(("age", "town"), 128)
    assert pair is not None
    sizes = [GRID.sizes[name] for name in pair]
    assert sizes[0] * sizes[1] <= 128 < 2 * sizes[0] * sizes[1]


def test_what_no_resolution_brings_within_the_budget_is_no_candidate() -> None:
    assert GRID.within(("age", "sex", "town", "work"), 15) is None
    assert GRID.within(("age", "sex", "town", "work"), 16) is not None


def test_binary_columns_have_no_levels_and_their_candidates_are_the_closure() -> None:
    names = tuple("abcdef")
    domain = Domain(names, tuple(Codes(2) for _ in names))
    levels = levels_of(domain, {name: [500, 300] for name in names}, dict.fromkeys(names, Fraction(9)))
    assert not any(levels.values())
    workload = Workload.from_spec({"degree": 3}, domain)
    found = candidates(Grid(domain, levels), workload.closure, workload.weights, (16, 128, 1024))
    assert [c.clique for c in found] == list(workload.closure)


def test_prices_grow_with_the_cells_and_the_median_candidate_pays_one() -> None:
    found = candidates(GRID, WORKLOAD.closure, WORKLOAD.weights, (16, 128, 1024))
    costs = dict(zip(found, prices(found), strict=True))
    ranked = sorted(found, key=lambda c: c.weight * c.cells)
    assert costs[ranked[len(ranked) // 2]] == 1
    assert [costs[c] for c in ranked] == sorted(costs[c] for c in ranked)
    assert min(costs.values()) >= Fraction(1, 64)


@pytest.mark.parametrize("missing", [True, False])
def test_categories_are_ordered_by_their_noisy_counts(missing: bool) -> None:
    column = Categorical(("a", "b", "c", "d"), missing)
    counts = [5, 100, 7, 90, *([300] if missing else [])]
    bins = partitions(counts, Fraction(1), ordered=is_ordered(column))[0]
    heavy = {4} if missing else {1}
    assert {code for code, number in enumerate(bins) if number == 0} == heavy
