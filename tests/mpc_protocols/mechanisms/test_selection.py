"""Parameters of a selection: the published choices, the ring rules, exact pruning, refusals, sensitivity on
real tables."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.bounds import sign_bits
from mpc_protocols.mechanisms.rounding import systematic
from mpc_protocols.mechanisms.selection import SelectionPlan, plan_selection, reference

F = Fraction
FULL = (1 << 80) - 1


def plan(
    weights: Sequence[Fraction | int], epsilon: Fraction, *, rows: int = 45_271, penalties: Sequence[Fraction] | None = None,
    sums: Sequence[int] | None = None, factor: int = 1,
) -> SelectionPlan:  # fmt: skip
    return plan_selection(
        [F(w) for w in weights],
        penalties or [F(0)] * len(weights),
        epsilon,
        sums or [rows] * len(weights),
        rows,
        factor,
    )


@pytest.mark.parametrize(
    ("epsilon", "a", "sensitivity"),
    [(F(73, 10000), 11, 477), (F(16, 100), 6, 326), (F(1), 4, 505), (F(4), 2, 508), (F(10), 0, 318)],
)
def test_published_choices_at_a_cap_of_512(epsilon: Fraction, a: int, sensitivity: int) -> None:
    """`docs/design/mechanisms.md` 1.3."""
    got = plan([1], epsilon, rows=((1 << 28) - 1) // 512)
    assert (got.a, got.sensitivity) == (a, sensitivity)


def test_published_extreme() -> None:
    """eps = 0.0008 over Adult: a grid of 2^14 units at a cap of 512."""
    got = plan([1], F(8, 10000), rows=((1 << 28) - 1) // 512)
    assert (got.a, got.sensitivity, got.ring_bits) == (14, 419, 32)


epsilons = st.fractions(min_value=F(1, 100_000), max_value=F(8), max_denominator=10**6)
row_bounds = st.integers(1, (1 << 31) - 1) | st.integers(1, 1 << 17)

Candidates = tuple[list[Fraction], list[Fraction], list[int], int]
"""Weights, penalties, sums of answers, row bound."""


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    rows = draw(row_bounds)
    n = draw(st.integers(1, 8))
    weights = draw(st.lists(st.fractions(F(1, 1000), 10_000, max_denominator=1000), min_size=n, max_size=n))
    penalties = draw(st.lists(st.fractions(0, 10**9, max_denominator=1000), min_size=n, max_size=n))
    sums = draw(st.lists(st.integers(0, 2 * rows), min_size=n, max_size=n))
    return weights, penalties, sums, rows


@given(candidates(), epsilons, st.integers(1, 20))
def test_integers_keep_the_rules(c: Candidates, epsilon: Fraction, factor: int) -> None:
    """For any public inputs: eps' within epsilon, weights within the sensitivity, keys within the ring,
    charge as stated."""
    weights, penalties, sums, rows = c
    try:
        got = plan_selection(weights, penalties, epsilon, sums, rows, factor)
    except StudyInvalid:
        # refused only where even 64-bit keys leave no weight to choose from
        cap = min(4096, ((1 << 60) - 1) // max(rows, *sums))
        assert rows.bit_length() >= 31 or factor * cap < 33 * epsilon
        return
    event, n = got.event, len(weights)
    assert event.rho <= epsilon**2 / 8 and event.beta == n * F(1, 2**70)
    nominal = F(got.sensitivity, 32 << got.a)
    assert nominal**2 / 8 < event.rho < (F(121, 100) * nominal) ** 2 / 8
    heaviest = max(weights)
    assert max(got.weights) == got.sensitivity // factor
    assert all(w == (x * max(got.weights)) // heaviest for w, x in zip(got.weights, weights, strict=True))
    assert factor * max(got.weights) <= got.sensitivity
    assert all(abs(b - w * p) <= F(1, 2) for b, w, p in zip(got.biases, got.weights, penalties, strict=True))
    assert got.sign_bits == rows.bit_length() + 1
    # every pair of keys of kept candidates, at the extremes of data and noise, differs by less than half the
    # ring
    least = {q: -got.biases[q] + (-250 << got.a) for q in got.contenders}
    most = {
        q: got.weights[q] * (rows + sums[q]) - got.biases[q] + (3195 << got.a) + (1 << got.a) - 1
        for q in got.contenders
    }
    assert got.contenders and max(most.values()) - min(least.values()) < 1 << got.ring_bits - 1
    # the rule of `docs/design/mechanisms.md` 5 in its own form
    widest = max(got.weights) * (max(rows, *sums) * 2) + (3446 << got.a)
    assert 2 * widest < 1 << got.ring_bits - 1
    if got.ring_bits == 64:  # not without need
        cap = min(4096, ((1 << 28) - 1) // max(rows, *sums))
        assert min(factor * cap, int((1 << 29) * epsilon / 108)) < max(64 * factor, 33 * epsilon)  # type: ignore[operator]


@given(candidates(), epsilons, st.randoms(use_true_random=False))
def test_pruning_never_changes_the_outcome(c: Candidates, epsilon: Fraction, rng: Random) -> None:
    """Whatever the data and the noise, a candidate dropped could not have won: the reference over all
    candidates of positive weight selects what it selects over those kept."""
    weights, penalties, sums, rows = c
    rows = min(rows, 1 << 20)
    sums = [min(s, rows) for s in sums]
    got = plan_selection(weights, penalties, epsilon, sums, rows, 1)
    draw = np.random.default_rng(rng.getrandbits(64))
    live = [q for q in range(len(weights)) if got.weights[q]]
    for _ in range(4):
        distance = {
            q: int(draw.choice([0, rows + sums[q], draw.integers(0, rows + sums[q] + 1)]))  # type: ignore[arg-type]
            for q in live
        }
        scores = {q: got.weights[q] * distance[q] - got.biases[q] for q in live}
        extremes = [0, FULL, int.from_bytes(draw.bytes(10), "big")]
        uniforms = {q: extremes[draw.integers(0, 3)] for q in live}
        dithers = {q: int(draw.integers(0, 1 << got.a)) for q in live}

        def run(over: Sequence[int]) -> int:
            drawn = [[values[q] for q in over] for values in (scores, uniforms, dithers)]  # noqa: B023
            return over[reference(*drawn, got.a)]  # type: ignore[arg-type, call-arg]

        assert run(live) == run(got.contenders)


def test_pruning_takes_what_cannot_win_and_nothing_else() -> None:
    """One candidate's penalty moved across the exact boundary hi = max lo."""
    rows, epsilon = 1000, F(1)
    base = plan([1, 1], epsilon, rows=rows)
    w, a = base.weights[1], base.a
    # hi_1 = w (rows + sum) - bias + 3196 g - 1 against lo_0 = -250 g
    boundary = w * 2 * rows + (3196 << a) - 1 + (250 << a)
    at = plan([1, 1], epsilon, rows=rows, penalties=[F(0), F(boundary, w)])
    beyond = plan([1, 1], epsilon, rows=rows, penalties=[F(0), F(boundary + 1, w)])
    assert at.contenders == (0, 1) and beyond.contenders == (0,)
    # at the boundary the dropped-or-not candidate can still tie the other's least key (and loses to the lower
    # position)
    scores = [-at.biases[0], w * 2 * rows - at.biases[1]]
    assert reference(scores, [0, FULL], [0, (1 << a) - 1], a) == 0
    assert scores[0] + (gumbel.LOW << a) == scores[1] + (gumbel.HIGH << a) + (1 << a) - 1


def test_huge_penalties_do_not_overflow() -> None:
    """`prune = false`: biases far beyond the ring are dropped by the exact rule before a key is computed."""
    got = plan([1, 2, 3], F(35, 1000), penalties=[F(10), F(10**15), F(20)])
    assert got.contenders == (0, 2) and got.ring_bits == 32


def test_a_weight_that_rounds_to_zero_is_dropped() -> None:
    got = plan([F(1), F(1, 10_000)], F(1))
    assert got.weights[1] == 0 and got.contenders == (0,)


def test_ties_go_to_the_lowest_position() -> None:
    assert reference([5, 5, 5], [7, 7, 7], [0, 0, 0], 3) == 0
    assert reference([4, 5, 5], [7, 7, 7], [0, 0, 0], 3) == 1
    assert reference([5, 5], [0, gumbel.THRESHOLDS[0]], [0, 0], 3) == 1
    assert reference([5, 5], [0, gumbel.THRESHOLDS[0] - 1], [0, 0], 3) == 0
    assert reference([5, 5], [0, 0], [0, 1], 3) == 1


def test_wide_rows_take_wide_keys() -> None:
    assert plan([1], F(1), rows=1 << 21).ring_bits == 32
    assert plan([1], F(1), rows=1 << 23).ring_bits == 64
    assert plan([1], F(1, 200_000), rows=1000).ring_bits == 64  # so much noise that 32 bits leave no weights


@pytest.mark.parametrize(("epsilon", "rows"), [(F(200), 1000), (F(1), 1 << 31)])
def test_refusals_name_the_numbers(epsilon: Fraction, rows: int) -> None:
    with pytest.raises(StudyInvalid) as refused:
        plan([1], epsilon, rows=rows)
    assert str(rows) in refused.value.sentence


def test_a_large_unit_keeps_the_resolution_of_the_weights() -> None:
    """The noise grows with the sensitivity instead: at 1,000 rows per unit a weight still has 419 levels, not
    4."""
    one, many = (plan([1, 2], F(1, 10), factor=factor) for factor in (1, 1000))
    assert max(one.weights) == 3272 and max(many.weights) == 419
    assert many.sensitivity >= 1000 * max(many.weights) and many.event.rho <= F(1, 800)


def test_invalid_arguments_are_refused() -> None:
    for bad in (
        lambda: plan([], F(1)),
        lambda: plan([0], F(1)),
        lambda: plan([1], F(0)),
        lambda: plan([1], F(1), rows=0),
        lambda: plan([1], F(1), sums=[-1]),
        lambda: plan([1], F(1), penalties=[F(0), F(0)]),
        lambda: plan([1], F(1), factor=0),
    ):
        with pytest.raises(ValueError):
            bad()


# -- sensitivity, on every neighbour of small tables
# -------------------------------------------------------------------

SIZES = (2, 3, 2)
CLIQUES = [c for k in (1, 2, 3) for c in combinations(range(3), k)]
ROWS = list(product(*(range(s) for s in SIZES)))


def counts(table: Sequence[tuple[int, ...]], clique: tuple[int, ...]) -> NDArray[np.int64]:
    shape = [SIZES[i] for i in clique]
    out = np.zeros(shape, dtype=np.int64)
    for row in table:
        out[tuple(row[i] for i in clique)] += 1
    return out.reshape(-1)


def scores_of(
    table: Sequence[tuple[int, ...]], got: SelectionPlan, answers: Sequence[NDArray[np.int64]]
) -> list[int]:
    return [
        w * int(np.abs(counts(table, clique) - c).sum()) - bias
        for clique, c, w, bias in zip(CLIQUES, answers, got.weights, got.biases, strict=True)
    ]


@pytest.mark.parametrize(
    ("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 1), ("add-remove", 2), ("replace", 2)]
)
def test_scores_of_all_neighbours_stay_within_the_sensitivity(adjacency: str, unit_rows: int) -> None:
    """6.9: integer scores with rounded answers and biases, every move of one unit of up to `unit_rows` rows;
    the bound is met."""
    factor = unit_rows * (2 if adjacency == "replace" else 1)
    weights = [len(c) for c in CLIQUES]
    got = plan(
        weights,
        F(1),
        rows=20,
        penalties=[F(3 * len(c), 7) for c in CLIQUES],
        sums=[21] * len(CLIQUES),
        factor=factor,
    )
    rng = np.random.default_rng(3)
    table = [ROWS[i] for i in rng.integers(0, len(ROWS), 7)]
    answers = []
    for clique in CLIQUES:
        n = int(np.prod([SIZES[i] for i in clique]))
        answers.append(systematic([rng.dirichlet(np.ones(n)) * 9], 20, 0.37)[0])
    before = scores_of(table, got, answers)
    widest = 0
    units = list(product(ROWS, repeat=unit_rows))
    if adjacency == "add-remove":
        neighbours = [(table, [*table, *unit]) for unit in units]
    else:
        rest = table[unit_rows:]
        neighbours = [(table, [*rest, *unit]) for unit in units]
    for _, other in neighbours:
        after = scores_of(other, got, answers)
        moved = [abs(x - y) for x, y in zip(before, after, strict=True)]
        assert all(m <= factor * w for m, w in zip(moved, got.weights, strict=True))
        widest = max(widest, *moved)
    assert widest <= got.sensitivity
    if adjacency == "add-remove":
        assert widest >= max(got.weights) * factor / 3


def folded(d: int, planes: int, ring: int = 32) -> int:
    """|d| as the protocol has it: the sign from bit `planes` - 1, the value modulo 2^ring."""
    sign = d >> planes - 1 & 1
    return d * (1 - 2 * sign) % (1 << ring)


@pytest.mark.parametrize("bound", [1, 2, 3, 4, 7, 8, 63, 64, 65, 300])
def test_sign_planes_hold_every_difference_and_no_fewer_do(bound: int) -> None:
    planes = sign_bits(bound)
    assert all(folded(d, planes) == abs(d) for d in range(-bound, bound + 1))
    assert any(folded(d, planes - 1) != abs(d) for d in range(-bound, bound + 1))


@pytest.mark.parametrize("planes", range(2, 32))
def test_beyond_the_bound_one_record_makes_the_score_jump(planes: int) -> None:
    """The regression of `docs/design/mechanisms.md` 5: with fewer planes than the ring a false count at 2^(k-1) - 1 jumps by 2^k
    - 1 when an honest record arrives. That is why the bound on rows is public, asserted, and charged where it is an estimate.
    """
    edge = (1 << planes - 1) - 1
    jump = folded(edge + 1, planes) - folded(edge, planes)
    centred = (jump + (1 << 31)) % (1 << 32) - (1 << 31)
    assert abs(centred) == (1 << planes) - 1


def test_a_full_ring_of_planes_is_a_triangle_wave() -> None:
    """k = ring: 1-Lipschitz for every value, whatever was shared."""
    for ring in (2, 3, 8, 12):
        wave = [folded(d, ring, ring) for d in range((1 << ring) + 1)]
        assert all(abs(x - y) == 1 for x, y in pairwise(wave))
