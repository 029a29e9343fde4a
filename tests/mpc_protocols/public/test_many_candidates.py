"""Of thousands of candidates nothing is worked out one by one that can be together: the same as one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.engine.blank import blank
from mpc_protocols.mechanisms.rounding import systematic, theta_of
from mpc_protocols.mechanisms.selection import MAX_FAMILY, SelectionPlan, plan_selection
from mpc_protocols.public import rounded_answers
from mpc_protocols.public.answers import SPLIT, Answers, CellRange, DealerLayout
from mpc_protocols.public.rounded_answers import RoundedAnswers, sum_bounds
from mpc_protocols.public.state import _by_first

ROWS = 3000
lengths = st.lists(
    st.integers(1, 40) | st.sampled_from([SPLIT - 1, SPLIT, SPLIT + 2]), min_size=1, max_size=12
)


def answers_of(cells: list[int], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.exponential(3.0, count) * (rng.random(count) < 0.7) for count in cells]


@given(lengths, st.sampled_from([1, 3]), st.integers(0, 999), st.sampled_from([1, 16, 1 << 18]))
def test_answers_are_rounded_together_as_each_by_itself(
    cells: list[int], dealers: int, seed: int, most: int
) -> None:
    answers = answers_of(cells, seed)
    ranges = [(q, CellRange(q + 7, 0, count)) for q, count in enumerate(cells)]
    layout, theta = DealerLayout(ranges, dealers), theta_of(bytes(32), seed)
    alone = [systematic([answer], ROWS, theta)[0] for answer in answers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounded_answers, "MAX_RANGE", max(most, max(cells)))
        [rounded] = RoundedAnswers([layout], answers, ROWS, theta)
        bounds = sum_bounds(range(7, 7 + len(cells)), answers, ROWS)
    np.testing.assert_array_equal(rounded.cells, layout.by_dealer(alone))
    np.testing.assert_array_equal(rounded.cells, Answers.of(layout, alone).cells)
    assert bounds == [sum_bounds([7 + q], [answer], ROWS)[0] for q, answer in enumerate(answers)]
    assert all(int(of.sum()) <= bound for of, bound in zip(alone, bounds, strict=True))


def pairs_of(n: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Conflicts among n candidates, in any order, some twice."""
    pairs = [(p, q) for q in range(n) for p in range(q)]
    return st.lists(st.sampled_from(pairs), max_size=30)


@given(st.data(), st.integers(2, 9))
def test_conflicts_are_listed_with_the_first_of_each_pair(data: st.DataObject, n: int) -> None:
    conflicts = data.draw(pairs_of(n))
    listed = _by_first(n, conflicts)
    assert listed == (
        tuple(tuple(sorted({q for p, q in conflicts if p == first})) for first in range(n))
        if conflicts
        else ()
    )
    plan = selection(n, listed)
    together = [{q for pair in conflicts if p in pair for q in pair} - {p} for p in range(n)]
    assert list(map(set, plan.conflicts)) == together


@pytest.mark.parametrize("wrong", [(1, 1), (2, 1), (-1, 2), (0, 3)])
def test_a_conflict_that_is_no_ascending_pair_is_named(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=rf"ascending order, not \({wrong[0]}, {wrong[1]}\)"):
        _by_first(3, [(0, 1), wrong])


def selection(n: int, conflicts: tuple[tuple[int, ...], ...]) -> SelectionPlan:
    of_all = [Fraction(1)] * n, [Fraction(0)] * n
    return plan_selection(*of_all, Fraction(1), [ROWS] * n, ROWS, 1, min(2, n), conflicts)


def families_one_by_one(plan: SelectionPlan) -> list[tuple[int, ...]]:
    found: list[list[int]] = []
    for q in plan.contenders:
        family = found[-1] if found else []
        leaves = [plan.conflicts[p] | {p} for p in (q, *family[:1])]
        if family and len(family) < MAX_FAMILY and leaves[0] == leaves[1]:
            family.append(q)
        else:
            found.append([q])
    return list(map(tuple, found))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=24), st.booleans())
def test_families_are_those_that_leave_together(sets: list[int], wide: bool) -> None:
    """Candidates of one number are in conflict with one another, as resolutions of one set of columns are."""
    n = len(sets)
    conflicts = [(p, q) for q in range(n) for p in range(q) if sets[p] == sets[q]]
    plan = selection(n, _by_first(n, conflicts))
    if wide:  # keys that do not fit the ring with their differences
        plan = replace(plan, highest=tuple(high + (1 << plan.ring_bits) for high in plan.highest))
    assert list(plan.families) == ([(q,) for q in plan.contenders] if wide else families_one_by_one(plan))


@given(st.data(), st.integers(2, 9), st.integers(1, 3), st.sampled_from([0, 1 << 80]))
def test_who_is_left_after_a_pick_is_worked_out_together_as_one_by_one(
    data: st.DataObject, n: int, picks: int, far: int
) -> None:
    """far: taken off every key alike, so that they are integers of any size and nothing else changes."""
    penalties = data.draw(st.lists(st.integers(0, 6 * ROWS), min_size=n, max_size=n))
    conflicts = _by_first(n, data.draw(pairs_of(n)))
    plan = plan_selection(
        [Fraction(1)] * n,
        [Fraction(penalty + far) for penalty in penalties],
        Fraction(1, 2),
        [ROWS] * n,
        ROWS,
        1,
        min(picks, n),
        conflicts,
    )
    picked: list[int] = []
    while left := plan.candidates(picked):
        gone = {other for q in picked for other in (q, *plan.conflicts[q])}
        staying = [q for q in plan.contenders if q not in gone]
        floor = max(plan.lowest[q] for q in staying)
        expected = tuple(q for q in staying if plan.highest[q] >= floor)
        assert left == (plan.contenders if plan.picks == 1 and not picked else expected)
        numbers = plan.families_of(left)
        assert numbers == tuple(k for k, family in enumerate(plan.families) if set(family) & set(left))
        picked.append(data.draw(st.sampled_from(left)))
    assert plan.families_of(()) == ()


def test_all_of_a_blank_array_is_itself() -> None:
    for shape in ((5,), (3, 4)):
        assert blank(shape, np.uint32)[:] is blank(shape, np.uint32)
    assert blank(5, np.uint32)[0:3].shape == (3,)
