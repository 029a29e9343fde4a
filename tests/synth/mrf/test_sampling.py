"""Sampled rows: counts within rounding of the model, unbiased, and closer to targets once balanced, at no
cost inside cliques."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.mrf import Measurement, Model, fit
from synth.mrf.rows import balance
from synth.mrf.rows.cells import CellTargets
from synth.mrf.rows.pairs import PairTargets
from tests.synth.mrf.problems import Array, cells, cliques_of, counted, domains, problems


def _random_model(sizes: dict[str, int], cliques: list[tuple[str, ...]], seed: int) -> Model:
    rng = np.random.default_rng(seed)
    ordered = {tuple(n for n in sizes if n in clique and sizes[n] > 1) for clique in cliques} - {()}
    return Model(
        sizes, 1000.0, {clique: rng.normal(0, 1.5, cells(sizes, clique)) for clique in sorted(ordered)}
    )


@given(st.data(), st.sampled_from([0, 1, 2, 17, 1000]), st.integers(0, 2**32 - 1))
def test_counts_inside_cliques_are_within_the_stated_bound(data: st.DataObject, rows: int, seed: int) -> None:
    sizes = data.draw(domains())
    model = _random_model(sizes, data.draw(cliques_of(sizes)), seed)
    table = model.sample(rows, np.random.default_rng(seed))
    assert table.shape == (rows, len(sizes)) and table.dtype == np.int64
    assert (table >= 0).all() and (table < np.array(list(sizes.values()))).all()
    if not rows:
        return
    for node, separator in zip(model.tree.nodes, model.tree.separators, strict=True):
        order = separator + tuple(name for name in node if name not in separator)
        groups = cells(sizes, separator)
        expected = (model.marginal(order) * rows / model.total).reshape(groups, -1)
        count = counted(sizes, table, order).reshape(groups, -1)
        group_expected, group_count = expected.sum(axis=1, keepdims=True), count.sum(axis=1, keepdims=True)
        share = expected / np.maximum(group_expected, 1e-300)
        assert (np.abs(count - expected) < 1 + share * np.abs(group_count - group_expected) + 1e-6).all()
        # Within its group every cell is rounded up or down, never further.
        assert (np.abs(count - share * group_count) < 1 + 1e-6).all()


def test_sampling_is_unbiased() -> None:
    """Mean over 4,000 tables of 7 rows, every cell of the joint within 5 standard errors. 24 cells are
    compared: by the normal law a false alarm has probability 24 x 6e-7 = 2e-5; the seed is fixed."""
    sizes = {"a": 2, "b": 3, "c": 4}
    model = _random_model(sizes, [("a", "b"), ("b", "c")], 3)
    rng = np.random.default_rng(11)
    counts = np.stack(
        [counted(sizes, model.sample(7, rng, targets=()), ("a", "b", "c")) for _ in range(4000)]
    )
    expected = model.marginal(("a", "b", "c")) * 7 / model.total
    error = counts.std(axis=0) / np.sqrt(len(counts)) + 1e-4
    assert (np.abs(counts.mean(axis=0) - expected) < 5 * error).all()


def _workload(sizes: dict[str, int]) -> list[tuple[str, ...]]:
    return list(combinations(sizes, 3)) + list(combinations(sizes, 2))


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([2, 3, 50, 700]), st.integers(0, 2**32 - 1))
def test_balancing_changes_no_count_inside_a_clique(
    problem: tuple[dict[str, int], list[Measurement]], rows: int, seed: int
) -> None:
    sizes, measurements = problem
    model = fit(sizes, measurements, iterations=30)
    plain = model.sample(rows, np.random.default_rng(seed), targets=())
    balanced = model.sample(rows, np.random.default_rng(seed), targets=_workload(sizes), sweeps=2)
    for node in model.tree.nodes:
        np.testing.assert_array_equal(counted(sizes, plain, node), counted(sizes, balanced, node))
    distance = {"plain": 0.0, "balanced": 0.0}
    for query in _workload(sizes):
        goal = model.marginal(query) * rows / model.total
        distance["plain"] += float(np.abs(counted(sizes, plain, query) - goal).sum())
        distance["balanced"] += float(np.abs(counted(sizes, balanced, query) - goal).sum())
    # Up to 127 rows pairs are judged one by one; at 700, ten at a time may overshoot together by a few rows.
    assert distance["balanced"] <= distance["plain"] * (1 + 1e-6) + (1e-3 if rows < 128 else 40)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(2, 400), st.integers(0, 2**32 - 1))
def test_what_balancing_keeps_in_mind_is_what_the_rows_say(data: st.DataObject, rows: int, seed: int) -> None:
    """After exchanges of any columns between any pairs: the surplus of cells, whatever judges the targets."""
    sizes, rng = data.draw(domains(5)), np.random.default_rng(seed)
    names = list(sizes)
    values = np.stack([rng.integers(0, size, rows) for size in sizes.values()]).astype(np.int32)
    cliques = data.draw(cliques_of(sizes).filter(bool))
    cliques = sorted({*cliques, *(pair for pair in combinations(names, 2) if rng.random() < 0.7)})
    answers = [rng.uniform(0, 5, cells(sizes, clique)) + 0.1 for clique in cliques]
    exchanges = balance.Exchanges(sizes, cliques, answers, values)
    for _ in range(3):
        side = sorted(map(names.index, data.draw(st.sets(st.sampled_from(names), min_size=1))))
        order = rng.permutation(rows)
        exchanges.make(order[: rows // 2], order[rows // 2 : rows // 2 * 2], side, exchanges.judges(side))
    again = balance.Exchanges(sizes, cliques, answers, exchanges.values)
    for kept, counted_anew in zip(exchanges.kinds, again.kinds, strict=True):
        np.testing.assert_allclose(kept.surplus, counted_anew.surplus, atol=1e-3)


@given(domains(5), st.integers(2, 200), st.integers(0, 2**32 - 1))
def test_pairs_of_columns_cost_the_same_as_matrices_and_as_cells(
    sizes: dict[str, int], rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = np.stack([rng.integers(0, size, rows) for size in sizes.values()]).astype(np.int32)
    pairs = [pair for pair in combinations(sizes, 2) if rng.random() < 0.8]
    answers: dict[tuple[str, ...], Array] = {p: rng.uniform(0, 5, cells(sizes, p)) + 0.1 for p in pairs}
    for size in range(1, len(sizes)) if pairs else ():
        side = sorted(rng.choice(len(sizes), size, replace=False).tolist())
        judges = [kind(sizes, answers, values).across(side) for kind in (PairTargets, CellTargets)]
        half = rows // 2
        codes = values[:, : 2 * half].reshape(len(sizes), 2, half)
        found = []
        for judge in judges:
            if judge is not None:
                judge.look(codes)
                found.append(np.concatenate([judge.costs(0, half // 2), judge.costs(half // 2, half)]))
        assert len(found) in (0, 2)
        if found:
            np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_balancing_removes_most_of_the_noise_of_independent_columns() -> None:
    """Columns without any common clique: a random matching has the noise of a sample, a balanced one less
    than half of it."""
    sizes = {"a": 12, "b": 15, "c": 9, "d": 20}
    rng = np.random.default_rng(6)
    model = fit(sizes, [Measurement((n,), rng.uniform(100, 900, size), 1.0) for n, size in sizes.items()])
    pairs = list(combinations(sizes, 2))

    def distance(sweeps: int) -> float:
        table = model.sample(5000, np.random.default_rng(1), targets=pairs, sweeps=sweeps)
        goals: list[Array] = [model.marginal(pair) * 5000 / model.total for pair in pairs]
        return sum(
            float(np.abs(counted(sizes, table, p) - g).sum()) for p, g in zip(pairs, goals, strict=True)
        )

    assert distance(3) < 0.5 * distance(0)


def test_the_same_generator_gives_the_same_rows() -> None:
    sizes = {"a": 5, "b": 6, "c": 7}
    model = _random_model(sizes, [("a", "b")], 2)
    for targets in ([], None, _workload(sizes)):
        first, second = (model.sample(300, np.random.default_rng(9), targets=targets) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_targets_beyond_the_memory_limits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 5, "b": 6, "c": 7}
    model = _random_model(sizes, [("a",), ("b",), ("c",)], 2)
    monkeypatch.setattr(balance, "MAX_TARGET_CELLS", 34)
    pairs = list(combinations(sizes, 2))
    assert balance._affordable(sizes, pairs, np.random.default_rng(0)) == [0]
    monkeypatch.setattr(balance, "MAX_TARGET_CELLS", 29)
    assert balance._affordable(sizes, pairs, np.random.default_rng(0)) == []
    plain = model.sample(100, np.random.default_rng(3), sweeps=0)
    np.testing.assert_array_equal(
        plain, model.sample(100, np.random.default_rng(3), targets=_workload(sizes))
    )


def test_of_many_rows_a_sweep_looks_at_others_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    everybody = next(balance._windows(100, balance._window(100, 1000), rng))
    assert sorted(everybody) == list(range(100))
    monkeypatch.setattr(balance, "MAX_WORK", 30 * 1000 * 10.0)
    windows = balance._windows(100, balance._window(100, 1000), rng)
    seen = [next(windows) for _ in range(10)]
    assert all(len(set(window.tolist())) == 30 for window in seen)
    assert [np.bincount(np.concatenate(seen), minlength=100).tolist()] == [[3] * 100]


def test_rows_that_are_looked_at_in_parts_are_rearranged_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 12, "b": 15, "c": 9, "d": 20}
    model, targets = _random_model(sizes, [("a", "b"), ("b", "c"), ("c", "d")], 5), _workload(sizes)
    goals = [model.marginal(clique) * 3000 / model.total for clique in targets]

    def distance(sweeps: int) -> float:
        table = model.sample(3000, np.random.default_rng(2), targets=targets, sweeps=sweeps)
        return sum(
            float(np.abs(counted(sizes, table, q) - g).sum()) for q, g in zip(targets, goals, strict=True)
        )

    together, plain = distance(2), distance(0)
    monkeypatch.setattr(balance, "CODES", 1)
    assert distance(2) == pytest.approx(together, rel=0.05)
    assert together < 0.8 * plain


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        fit({"a": 2}, []).sample(-1, np.random.default_rng(0))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.sampled_from([20, 700, 5000]), st.integers(0, 2**32 - 1))
def test_costs_of_pairs_of_columns_are_exact_sums(columns: int, rows: int, seed: int) -> None:
    """Whatever the order of a product of matrices: as float64 sums them, which has bits to spare."""
    rng = np.random.default_rng(seed)
    sizes = {f"c{index}": int(rng.integers(1, 6)) for index in range(columns)}
    values = np.stack([rng.integers(0, size, rows) for size in sizes.values()]).astype(np.int32)
    answers: dict[tuple[str, ...], Array] = {
        pair: rng.exponential(5, cells(sizes, pair)) + 0.1 for pair in combinations(sizes, 2)
    }
    side = sorted(rng.choice(columns, columns // 2, replace=False).tolist())
    judge = PairTargets(sizes, answers, values).across(side)
    assert judge is not None
    judge.look(values.reshape(columns, 2, rows // 2))
    found = judge.costs(0, rows // 2)
    place = judge.starts[:-1, None] + values  # of each value among all
    surplus = judge.surplus.astype(np.float64)
    less, more = ((np.abs(surplus + step) - np.abs(surplus)) * judge.is_target for step in (-1, 1))
    of_side = np.searchsorted(judge.cells, judge.starts[side])[:, None] + values[side]
    for pair in range(0, rows // 2, 7):
        wanted = 0.0
        for other in set(range(columns)) - set(side):
            a, b = place[other, pair], place[other, pair + rows // 2]
            to_a, to_b = of_side[:, pair], of_side[:, pair + rows // 2]
            unlike = (to_a != to_b) & (a != b)
            costs = less[a, to_a] + less[b, to_b] + more[a, to_b] + more[b, to_a]
            wanted += float(costs[unlike].sum())
        assert found[pair] == wanted
