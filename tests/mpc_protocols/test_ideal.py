"""The ideal oracle: the guard comes first, the law is the one charged, the bits are those of the references."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import BudgetRefused, DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Event, MarginalOracle, StudyFacts
from mpc_protocols.mechanisms import gaussian, gumbel, selection
from mpc_protocols.mechanisms.gaussian import sample, sampler
from mpc_protocols.public.rounded_answers import RoundedAnswers
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.mechanisms.laws import law, production

F = Fraction
SIZES = {"a": 2, "b": 3, "c": 4}
SETTING = StudyFacts(SIZES, "add-remove", 1, 10_000, b"session")
ROWS = np.random.default_rng(7).integers(0, 12, (300, 3)) % np.array(list(SIZES.values()))


def by_range(rounded: RoundedAnswers) -> list[np.ndarray]:
    """The rounded answers of candidates that are one group, each a range."""
    [answers] = rounded
    return answers.layout.by_range(answers.cells)


def count(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
    columns = list(SIZES)
    out = []
    for clique in cliques:
        index = np.ravel_multi_index([ROWS[:, columns.index(c)] for c in clique], [SIZES[c] for c in clique])
        out.append(np.bincount(index, minlength=int(np.prod([SIZES[c] for c in clique]))).astype(np.int64))
    return out


def stream(seed: bytes = b"") -> Callable[[int], bytes]:
    """A reproducible source of bytes for tests."""
    state = [0]

    def take(n: int) -> bytes:
        state[0] += 1
        return hashlib.shake_128(seed + state[0].to_bytes(8, "big")).digest(n)

    return take


CLIQUES: list[Clique] = [("a",), ("b",), ("c",), ("a", "b"), ("c", "b"), ("a", "c")]


def oracle(guard: Recorder | None = None, **kwargs: object) -> IdealOracle:
    made = IdealOracle(SETTING, count, guard or Recorder(), **kwargs)  # type: ignore[arg-type]
    assert made.prepare(CLIQUES) == list(range(6))
    return made


def select(of: MarginalOracle) -> int:
    answers = [np.full(of.facts.cells(c), 300.0 / of.facts.cells(c)) for c in CLIQUES]
    [position] = of.select(range(6), answers, [F(len(c)) for c in CLIQUES], [F(3)] * 6, F(1, 5))
    return position


def test_the_guard_is_asked_before_anything_is_drawn() -> None:
    """At the moment of authorisation no noise exists and nothing was learnt."""
    drawn: list[int] = []

    def randomness(n: int) -> bytes:
        drawn.append(n)
        return bytes(n)

    class Watching(Recorder):
        def authorise(self, event: Event, inputs: bytes) -> None:
            assert not drawn
            assert inputs == watched.state.transcript
            super().authorise(event, inputs)

    guard = Watching()
    watched = oracle(guard, randomness=randomness)
    for ask in (lambda: watched.measure([0, 1], F(2)), lambda: select(watched), lambda: watched.total(F(2))):
        ask()
        assert drawn
        drawn.clear()
    assert [event.what for event, _ in guard.asked] == ["measure", "select", "total"]
    assert len({inputs for _, inputs in guard.asked}) == 3


def test_a_refusing_guard_stops_everything() -> None:
    def never(n: int) -> bytes:
        raise AssertionError("noise was drawn for a refused release")

    for ask in (lambda o: o.measure([0], F(2)), select, lambda o: o.total(F(2))):
        refused = oracle(Recorder(refuse_from=0), randomness=never)
        with pytest.raises(BudgetRefused):
            ask(refused)
        assert refused.noisy_total is None and refused.row_bound == 10_000
        with pytest.raises(ProtocolAborted):  # the step stays open: nothing can follow it
            refused.total(F(2))


def test_measurement_is_the_counts_plus_the_reference_noise() -> None:
    made = oracle(randomness=stream())
    noisy = made.measure([3, 5, 0], F(20000))
    of = sampler(F(20000))
    source = stream()
    uniforms = np.frombuffer(source(8 * 2 * 16), dtype=np.uint64).reshape(2, 16)
    signs = np.unpackbits(np.frombuffer(source(4), dtype=np.uint8)).reshape(2, 16)
    noise = [
        gaussian.reference(of, [int(u) for u in uniforms[:, i]], [int(s) for s in signs[:, i]])
        for i in range(16)
    ]
    expected = np.concatenate(count([("a", "b"), ("a", "c"), ("a",)])) + noise
    assert [len(n) for n in noisy] == [6, 8, 2] and all(n.dtype == np.int64 for n in noisy)
    np.testing.assert_array_equal(np.concatenate(noisy), expected)


def integers(source: Callable[[int], bytes], width: int, count: int) -> list[int]:
    """So many numbers of so many bytes, drawn together."""
    drawn = source(width * count)
    return [int.from_bytes(drawn[start : start + width], "big") for start in range(0, len(drawn), width)]


def test_selection_is_the_reference_on_the_scores() -> None:
    for run in range(30):
        seed = run.to_bytes(2, "big")
        made = oracle(randomness=stream(seed))
        first = IdealOracle(SETTING, count, Recorder(), randomness=stream(seed))
        first.prepare(CLIQUES)
        answers = [np.full(SETTING.cells(c), 300.0 / SETTING.cells(c)) for c in CLIQUES]
        begun, rounded = first.state.begin_select(
            range(6), answers, [F(len(c)) for c in CLIQUES], [F(3)] * 6, F(1, 5)
        )
        plan = begun.plan
        assert plan.a % 8  # so that surplus bits of V would show
        scores = [
            plan.weights[q]
            * sum(abs(m - c) for m, c in zip(count([CLIQUES[q]])[0].tolist(), answer.tolist(), strict=True))
            - plan.biases[q]
            for q, answer in zip(plan.contenders, by_range(rounded), strict=True)
        ]
        source = stream(seed)
        uniforms = integers(source, 10, len(scores))
        dithers = [number >> -plan.a % 8 for number in integers(source, (plan.a + 7) // 8, len(scores))]
        assert max(uniforms) < 1 << 80 and max(dithers) < 1 << plan.a
        assert select(made) == plan.contenders[selection.reference(scores, uniforms, dithers, plan.a)]


@pytest.mark.parametrize("penalty", [3, 10**18])
def test_several_picks_are_the_reference_however_large_keys_are(penalty: int) -> None:
    weights, penalties = [F(len(c)) for c in CLIQUES], [F(3), *[F(penalty)] * 5]
    answers = [np.full(SETTING.cells(c), 300.0 / SETTING.cells(c)) for c in CLIQUES]
    for run in range(10):
        seed = run.to_bytes(2, "big")
        made = IdealOracle(SETTING, count, Recorder(), randomness=stream(seed))
        first = IdealOracle(SETTING, count, Recorder(), randomness=stream(seed))
        for of in (made, first):
            of.prepare(CLIQUES)
        begun, rounded = first.state.begin_select(range(6), answers, weights, penalties, F(1, 5), 3)
        plan, source = begun.plan, stream(seed)
        assert (max(abs(plan.lowest[q]) for q in plan.contenders) >= 1 << 63) == (penalty > 3)
        scores = {
            q: plan.weights[q] * int(np.abs(count([CLIQUES[q]])[0] - answer.astype(np.int64)).sum())
            - plan.biases[q]
            for q, answer in zip(plan.contenders, by_range(rounded), strict=True)
        }
        picked: list[int] = []
        for _ in range(3):
            drawn = integers(source, 10, len(scores))
            dithers = [number >> -plan.a % 8 for number in integers(source, (plan.a + 7) // 8, len(scores))]
            left = plan.candidates(picked)
            places = [plan.contenders.index(q) for q in left]
            winner = selection.reference(
                [scores[q] for q in left], [drawn[p] for p in places], [dithers[p] for p in places], plan.a
            )
            picked.append(left[winner])
        assert made.select(range(6), answers, weights, penalties, F(1, 5), 3) == picked


def test_total_and_row_bound() -> None:
    made = oracle()
    value = made.total(F(100))
    assert abs(value - 300) <= 92
    assert made.noisy_total == value and made.row_bound == value + 91
    unprepared = IdealOracle(SETTING, count, Recorder())
    assert abs(unprepared.total(F(1)) - 300) <= 9


def test_preparing_is_free_and_idempotent() -> None:
    guard = Recorder()
    made = oracle(guard)
    assert made.prepare([("b",), ("a", "b")]) == [1, 3] and made.prepare([]) == []
    assert made.prepare([("b", "a")]) == [6]
    assert not guard.asked
    assert made.state.shared == [("a", "b"), ("c", "b"), ("a", "c")]
    with pytest.raises(StudyInvalid, match="'z'"):
        made.prepare([("z",)])


def test_data_that_breaks_the_public_bounds_is_refused() -> None:
    small = IdealOracle(replace(SETTING, row_cap=299), count, Recorder())
    with pytest.raises(DataRefused, match="more than the declared 299 rows") as refused:
        small.prepare([("a",)])
    assert "300" not in refused.value.sentence  # the count itself is private
    for bad in ([np.array([1, -1])], [np.array([1, 2, 3])]):
        with pytest.raises(DataRefused):
            IdealOracle(SETTING, lambda cliques, bad=bad: bad, Recorder()).prepare([("a",)])  # type: ignore[misc]


@pytest.mark.parametrize("sigma", [1, 10, 100])
def test_a_million_draws_fit_the_table(sigma: int) -> None:
    """Chi-square against the table's own exact law, cells merged to 25 expected; false alarm 1e-6 each."""
    of = sampler(F(sigma**2))
    n = 1_000_000
    drawn = sample(of, n)
    edges = [0, *of.parts[0][1].thresholds, 1 << 64]
    half = [(b - a) / 2.0**64 for a, b in pairwise(edges)]
    expected = n * np.array([p / 2 for p in half[:0:-1]] + [half[0]] + [p / 2 for p in half[1:]])
    observed = np.bincount(drawn + of.bound, minlength=2 * of.bound + 1).astype(float)
    assert len(observed) == len(expected)
    keep = expected >= 25
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 25:  # too little left over: into the last cell
        observed, expected = (
            np.append(observed[:-2], observed[-2:].sum()),
            np.append(expected[:-2], expected[-2:].sum()),
        )
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-6


def test_a_wide_sampler_has_the_variance_it_says() -> None:
    """False alarm: 6 standard errors of a variance estimate, 2e-9."""
    drawn = sample(sampler(F(10**6)), 200_000).astype(float)
    assert drawn.var() == pytest.approx(10**6, rel=6 * (2 / 200_000) ** 0.5)
    assert abs(drawn.mean()) < 6 * 1000 / 200_000**0.5


def test_five_thousand_selections_fit_the_exact_law() -> None:
    """Chi-square of the whole oracle, answers that need no rounding so that every run has the same scores;
    false alarm 1e-6."""
    made = oracle()
    weights, penalties, epsilon = (
        [F(1), F(1), F(2), F(2), F(3), F(2)],
        [F(0), F(1), F(2), F(3), F(20), F(5)],
        F(1, 10),
    )
    answers = [np.full(SETTING.cells(c), 300 // SETTING.cells(c), dtype=np.float64) for c in CLIQUES]
    candidates = [0, 2, 4, 5]  # up to four, whose law the oracle of these tests knows
    pick = [[x[q] for q in candidates] for x in (weights, penalties)]
    args: tuple[Any, ...] = (candidates, [answers[q] for q in candidates], *pick, epsilon)
    other = oracle()
    begun, rounded = other.state.begin_select(*args)
    plan = begun.plan
    assert plan.contenders == (0, 1, 2, 3)
    scores = [
        w * int(np.abs(count([CLIQUES[q]])[0] - c).sum()) - bias
        for w, bias, q, c in zip(plan.weights, plan.biases, candidates, by_range(rounded), strict=True)
    ]
    exact = law(scores, plan.a, production())
    assert exact.min() > 0.01  # every candidate is in play
    runs = 5_000
    observed = np.bincount([made.select(*args)[0] for _ in range(runs)], minlength=4)
    assert stats.chisquare(observed, runs * exact).pvalue > 1e-6


def test_an_aim_sized_selection_is_quick(quiet_machine: bool) -> None:
    """64 candidates of 1,000,000 cells in all, none pruned: 25-37 ms of CPU each on busy cores, 0.3 s for
    ten."""
    sizes = {f"c{i}": 125 for i in range(64)} | {"wide": 125}
    rng = np.random.default_rng(0)
    cells = {c: rng.multinomial(45_000, np.full(125 * 125, 1 / 125**2)) for c in sizes}
    big = IdealOracle(
        StudyFacts(sizes, "add-remove", 1, 3 << 22, b"s"),
        lambda cliques: [cells[c[0]] for c in cliques],
        Recorder(),
    )
    handles = big.prepare([(f"c{i}", "wide") for i in range(64)])
    answers = [np.full(125 * 125, 45_000 / 125**2) for _ in handles]
    big.measure(handles[:1], F(100))
    started = process_time()
    for _ in range(5):
        big.select(handles, answers, [F(1)] * 64, [F(100)] * 64, F(35, 1000))
    if quiet_machine:
        assert (process_time() - started) / 5 < 0.1  # about three times what was measured


def test_gumbel_draws_take_ten_bytes_each() -> None:
    """U has exactly the bits of the table: no draw is rounded or reused."""
    asked: list[int] = []
    source = stream()

    def randomness(n: int) -> bytes:
        asked.append(n)
        return source(n)

    made = oracle(randomness=randomness)
    select(made)
    assert asked[0] == 6 * gumbel.BITS // 8 and len(asked) == 2
