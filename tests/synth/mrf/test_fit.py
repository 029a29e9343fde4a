"""The fit against an exact convex solver on the full joint, and its behaviour on measurements that only noise
can produce."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from synth.mrf import Measurement, Model, fit
from synth.mrf.fit import STARTING_SHARE, TOWARDS, estimate_total
from tests.synth.mrf.problems import Array, cells, loss, problems, project


def _optimum(sizes: dict[str, int], measurements: list[Measurement], total: float) -> tuple[float, Array]:
    """Least loss over all non-negative joint tables that add up to `total`, by an active-set solver (no
    graphical model)."""
    shape = tuple(sizes.values())
    count = int(np.prod(shape))
    rows, goals = [np.full((1, count), 1e5)], [np.array([1e5 * total])]
    for m in measurements:
        unit = np.stack([project(sizes, cell.reshape(shape), m.clique) for cell in np.eye(count)], axis=1)
        rows.append(unit / np.sqrt(m.variance))
        goals.append(m.values / np.sqrt(m.variance))
    table, _ = nnls(np.concatenate(rows), np.concatenate(goals), maxiter=20 * count)
    table *= total / table.sum()
    value = sum(
        float(np.square(project(sizes, table.reshape(shape), m.clique) - m.values).sum()) / (2 * m.variance)
        for m in measurements
    )
    return value, table.reshape(shape)


@settings(max_examples=25, deadline=None)
@given(problems(most=4))
def test_reaches_the_optimum_of_a_generic_solver(problem: tuple[dict[str, int], list[Measurement]]) -> None:
    sizes, measurements = problem
    with np.errstate(all="raise", under="ignore"):
        model = fit(sizes, measurements, iterations=1500, tolerance=0.0)
    best, table = _optimum(sizes, measurements, model.total)
    reached = loss(model, measurements)
    assert best - 1e-3 <= reached <= best * 1.002 + 0.05
    for m in measurements:
        np.testing.assert_allclose(
            model.marginal(m.clique), project(sizes, table, m.clique), atol=0.02 * model.total + 0.3
        )


def test_exact_measurements_are_reproduced_and_the_rest_is_maximum_entropy() -> None:
    """From exact marginals of (a, b) and (b, c) the model of maximum entropy is P(a, b) P(c | b)."""
    rng = np.random.default_rng(1)
    table = rng.integers(1, 60, (3, 4, 5)).astype(float)
    sizes = {"a": 3, "b": 4, "c": 5}
    measurements = [Measurement(c, project(sizes, table, c), 1.0) for c in [("a", "b"), ("b", "c")]]
    model = fit(sizes, measurements, iterations=3000, tolerance=0.0)
    expected = table.sum(axis=2)[:, :, None] * table.sum(axis=0)[None] / table.sum(axis=(0, 2))[None, :, None]
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), expected.reshape(-1), rtol=1e-3, atol=1e-3)


@given(problems())
def test_the_reported_loss_is_the_models_and_never_rises(
    problem: tuple[dict[str, int], list[Measurement]],
) -> None:
    sizes, measurements = problem
    losses: list[tuple[int, float]] = []
    model = fit(sizes, measurements, iterations=60, callback=lambda *report: losses.append(report))
    assert [number for number, _ in losses] == list(range(len(losses)))
    assert all(later <= earlier * (1 + 1e-12) + 1e-9 for (_, earlier), (_, later) in pairwise(losses))
    assert losses[-1][1] == pytest.approx(loss(model, measurements), rel=1e-6, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_measurements_does_not_matter(
    problem: tuple[dict[str, int], list[Measurement]], shuffler: random.Random
) -> None:
    sizes, measurements = problem
    first = fit(sizes, measurements, iterations=30)
    shuffler.shuffle(measurements)
    assert fit(sizes, measurements, iterations=30).to_bytes() == first.to_bytes()


def test_column_order_inside_a_clique_does_not_matter() -> None:
    values = np.arange(12.0).reshape(3, 4)
    sizes = {"a": 3, "b": 4}
    one = fit(sizes, [Measurement(("a", "b"), values.reshape(-1), 2.0)], iterations=40)
    other = fit(sizes, [Measurement(("b", "a"), values.T.reshape(-1), 2.0)], iterations=40)
    assert one.to_bytes() == other.to_bytes()
    np.testing.assert_array_equal(
        one.marginal(("b", "a")).reshape(4, 3).T.reshape(-1), one.marginal(("a", "b"))
    )


def test_repeated_cliques_count_by_inverse_variance() -> None:
    sizes = {"a": 3}
    twice = [
        Measurement(("a",), np.array([30.0, 10.0, 20.0]), 1.0),
        Measurement(("a",), np.array([10.0, 20.0, 30.0]), 3.0),
    ]
    model = fit(sizes, twice, iterations=2000, tolerance=0.0)
    np.testing.assert_allclose(model.marginal(("a",)), [25.0, 12.5, 22.5], atol=1e-3)
    assert list(model.cliques) == [("a",)]


def test_the_total_is_the_inverse_variance_mean_of_the_sums() -> None:
    one = Measurement(("a",), np.array([50.0, 50.0]), 1.0)  # a sum with variance 2
    other = Measurement(("b",), np.full(4, 27.5), 4.0)  # a sum with variance 16
    assert estimate_total([one, other]) == pytest.approx((100 / 2 + 110 / 16) / (1 / 2 + 1 / 16))
    assert fit({"a": 2, "b": 4}, [one, other]).total == estimate_total([one, other])
    assert fit({"a": 2, "b": 4}, [one, other], total=77.0).total == 77.0
    assert fit({"a": 2}, [Measurement(("a",), np.array([-5.0, -9.0]), 1.0)]).total == 1.0
    assert fit({"a": 2}, [], total=-3.0).total == 1.0


def test_the_fit_ends_early_when_it_no_longer_gains() -> None:
    rng = np.random.default_rng(3)
    measurements = [Measurement((name,), 100 + rng.normal(0, 5, 6), 25.0) for name in "ab"]
    measurements.append(Measurement(("a", "b"), 17 + rng.normal(0, 5, 36), 25.0))
    reports: list[float] = []
    fit({"a": 6, "b": 6}, measurements, iterations=1000, callback=lambda _, value: reports.append(value))
    assert 5 < len(reports) < 200 and reports[-6] - reports[-1] < 0.05 * reports[-1]
    reports.clear()
    fit(
        {"a": 6, "b": 6},
        measurements,
        iterations=250,
        tolerance=0.0,
        callback=lambda _, value: reports.append(value),
    )
    assert len(reports) == 251


def test_columns_without_a_measurement_are_uniform() -> None:
    model = fit({"a": 2, "b": 5, "c": 3}, [Measurement(("a",), np.array([30.0, 70.0]), 1.0)])
    np.testing.assert_allclose(model.marginal(("b",)), np.full(5, 20.0))
    np.testing.assert_allclose(model.marginal(("a", "c")), np.repeat([10.0, 70 / 3], 3), rtol=1e-2)


@pytest.mark.parametrize("least", [-170.0, -17_000.0])
def test_a_value_that_a_first_count_had_emptied_comes_back_when_it_is_measured_again(least: float) -> None:
    """Its potential has gone as far down as potentials go, and a step moves it by a residual."""
    emptied = fit(
        {"a": 4}, [Measurement(("a",), np.array([160.0, 200.0, least, -60.0]), 20_000.0)], total=300.0
    )
    assert emptied.marginal(("a",))[2] < 1e-6
    again = [Measurement(("a",), np.array([143.0, 188.0, 130.0, -10.0]), 2_300.0)]
    warm, cold = (fit({"a": 4}, again, total=447.0, warm_start=of, tolerance=0.0) for of in (emptied, None))
    assert warm.marginal(("a",)) == pytest.approx(cold.marginal(("a",)), abs=0.5)


def test_a_value_that_comes_back_leaves_the_rest_of_the_start_as_it_was() -> None:
    """A fit that begins anew would have lost what the pair's potentials hold, and ends early as all do."""
    sizes, levels = {"a": 4, "b": 3}, np.array([[40.0, 10, 5], [10, 40, 10], [5, 10, 40], [0, 0, 0]])
    pair = Measurement(("a", "b"), levels.reshape(-1), 4.0)
    emptied = fit(
        sizes,
        [pair, Measurement(("a",), np.array([55.0, 60, 55, -3000]), 4.0)],
        total=170.0,
        iterations=300,
    )
    assert emptied.marginal(("a",))[3] < 1e-3
    again = [pair, Measurement(("a",), np.array([55.0, 60, 55, 30]), 4.0)]
    begun = fit(sizes, again, total=200.0, warm_start=emptied, iterations=0)
    assert begun.marginal(("a",))[3] == pytest.approx(30, rel=0.3)
    given = begun.marginal(("a", "b")).reshape(4, 3)[:3]
    before = emptied.marginal(("a", "b")).reshape(4, 3)[:3]
    assert given / given.sum() == pytest.approx(before / before.sum(), abs=1e-9)
    warm, cold = (fit(sizes, again, total=200.0, warm_start=of, tolerance=0.0) for of in (emptied, None))
    assert warm.marginal(("a", "b")) == pytest.approx(cold.marginal(("a", "b")), abs=0.5)


def test_a_warm_start_continues_where_the_model_was() -> None:
    rng = np.random.default_rng(4)
    sizes = {"a": 6, "b": 7, "c": 8}
    truth = rng.integers(0, 50, (6, 7, 8)).astype(float)

    def noisy(*clique: str) -> Measurement:
        return Measurement(
            clique, project(sizes, truth, clique) + rng.normal(0, 3, cells(sizes, clique)), 9.0
        )

    measurements = [noisy("a"), noisy("b"), noisy("c"), noisy("a", "b")]
    before = fit(sizes, measurements, iterations=300)
    measurements.append(noisy("b", "c"))
    cold: list[float] = []
    warm: list[float] = []
    fit(sizes, measurements, iterations=20, callback=lambda _, value: cold.append(value))
    fit(sizes, measurements, iterations=20, warm_start=before, callback=lambda _, value: warm.append(value))
    assert warm[0] < cold[0] and warm[-1] <= cold[-1]
    again: list[float] = []
    fit(
        sizes,
        measurements[:4],
        iterations=0,
        warm_start=before,
        callback=lambda _, value: again.append(value),
    )
    assert again[0] == pytest.approx(loss(before, measurements[:4]), rel=1e-2)


def test_a_joint_marginal_new_to_a_warm_start_begins_half_way_to_what_was_measured() -> None:
    sizes = {"a": 3, "b": 2}
    columns = [
        Measurement(("a",), np.array([50.0, 30, 20]), 1.0),
        Measurement(("b",), np.array([60.0, 40]), 1.0),
    ]
    before = fit(sizes, columns, total=100.0, tolerance=0.0)
    values = np.array([45.0, 5, 10, 20, 5, 15])
    joint = Measurement(("a", "b"), values, 1.0)
    begun = fit(sizes, [*columns, joint], total=100.0, warm_start=before, iterations=0)
    expected = before.marginal(("a", "b"))
    expected = expected * (values / expected) ** TOWARDS
    assert begun.marginal(("a", "b")) == pytest.approx(expected * 100 / expected.sum(), rel=1e-9)


def test_noise_below_nothing_of_a_new_joint_marginal_empties_no_cell() -> None:
    """A measured cell counts as `STARTING_SHARE` of a standard deviation at least, and so does the model's."""
    sizes = {"a": 2, "b": 2}
    before = fit(sizes, [], total=100.0)
    joint = Measurement(("a", "b"), np.array([60.0, 45, 40, -1e6]), 25.0)
    begun = fit(sizes, [joint], total=100.0, warm_start=before, iterations=0)
    counts = begun.marginal(("a", "b"))
    assert counts[3] / counts[1] == pytest.approx((STARTING_SHARE * 5 / 45) ** TOWARDS, rel=1e-9)


HOSTILE: dict[str, tuple[dict[str, int], list[Measurement], float | None]] = {
    "all negative": ({"a": 4, "b": 3}, [Measurement(("a", "b"), np.full(12, -40.0), 100.0)], None),
    "all zero": (
        {"a": 4, "b": 3},
        [Measurement(("a", "b"), np.zeros(12), 1.0), Measurement(("b",), np.zeros(3), 1.0)],
        50.0,
    ),
    "one column": ({"a": 3}, [Measurement(("a",), np.array([5.0, 0.0, -2.0]), 1.0)], None),
    "single values": ({"a": 1, "b": 1}, [Measurement(("a", "b"), np.array([12.0]), 4.0)], None),
    "single value beside another": (
        {"a": 1, "b": 3},
        [Measurement(("b", "a"), np.array([9.0, 1.0, 2.0]), 4.0)],
        None,
    ),
    "nothing measured": ({"a": 3, "b": 2}, [], None),
    "huge total": (
        {"a": 3, "b": 2},
        [Measurement(("a", "b"), np.array([1e12, 0.0, 3e11, 5.0, 1.0, 2.0]), 1.0)],
        None,
    ),
    "tiny total": ({"a": 3, "b": 2}, [Measurement(("a", "b"), np.full(6, 1e-3), 1.0)], None),
    "tiny variance": ({"a": 3, "b": 2}, [Measurement(("a",), np.array([5.0, 0.0, 1.0]), 1e-12)], None),
    "variances far apart": (
        {"a": 3, "b": 2},
        [Measurement(("a",), np.array([5.0, 0.0, 1.0]), 1e-9), Measurement(("a", "b"), np.arange(6.0), 1e9)],
        None,
    ),
    "contradiction": (
        {"a": 2, "b": 2},
        [
            Measurement(("a",), np.array([1e6, -1e6]), 1e-3),
            Measurement(("a", "b"), np.array([0.0, 0.0, 1e6, 1e6]), 1e-3),
        ],
        10.0,
    ),
    "wide": (
        {"a": 300, "b": 120},
        [Measurement(("a", "b"), np.random.default_rng(0).normal(1, 50, 36000), 2500.0)],
        None,
    ),
    "disconnected": (
        {"a": 2, "b": 2, "c": 2, "d": 2},
        [Measurement(("a", "b"), np.arange(4.0), 1.0), Measurement(("c", "d"), np.arange(4.0)[::-1], 1.0)],
        None,
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_odd_measurements_give_a_proper_distribution(name: str) -> None:
    sizes, measurements, total = HOSTILE[name]
    losses: list[float] = []
    with np.errstate(all="raise", under="ignore"):
        model = fit(
            sizes, measurements, total=total, iterations=400, callback=lambda _, value: losses.append(value)
        )
        for query in [*((column,) for column in sizes), tuple(sizes)]:
            answer = model.marginal(query)
            assert np.isfinite(answer).all() and (answer >= 0).all()
            assert answer.sum() == pytest.approx(model.total)
        assert model.sample(20, np.random.default_rng(0)).shape == (20, len(sizes))
    assert np.isfinite(losses).all() and losses[-1] <= losses[0]
    assert losses[-1] == pytest.approx(loss(model, measurements), rel=1e-5, abs=1e-6)


def test_a_hundred_iterations_are_enough_for_many_cliques_on_a_realistic_domain() -> None:
    """Fourteen columns of up to 100 values, 14 + 10 measurements, 45,000 rows: within 10 % of the loss after
    3,000 iterations."""
    rng = np.random.default_rng(8)
    sizes = dict(zip("abcdefghijklmn", (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2), strict=True))
    hidden = rng.integers(0, 6, 45_000)
    data = {
        n: np.minimum((hidden * 7 + rng.geometric(2 / (3 + s / 6), 45_000)) * s // 60, s - 1)
        for n, s in sizes.items()
    }
    cliques = [(n,) for n in sizes] + [
        tuple(p) for p in ("def", "efi", "gfn", "bf", "ie", "ea", "lh", "hi", "bdi", "gi")
    ]
    measurements = []
    for clique in cliques:
        shape = [sizes[n] for n in clique]
        exact = np.bincount(
            np.ravel_multi_index([data[n] for n in clique], shape), minlength=int(np.prod(shape))
        )
        measurements.append(Measurement(clique, exact + rng.normal(0, 60, exact.size), 3600.0))
    short = loss(fit(sizes, measurements, iterations=100, tolerance=0.0), measurements)
    long = loss(fit(sizes, measurements, iterations=3000, tolerance=0.0), measurements)
    assert short <= 1.1 * long


@pytest.mark.parametrize(
    ("measurement", "sentence"),
    [
        (lambda: Measurement(("a", "a"), np.zeros(4), 1.0), "names a column twice"),
        (lambda: Measurement(("a",), np.array([1.0, np.nan]), 1.0), "holds a value that is not finite"),
        (lambda: Measurement(("a",), np.zeros(2), 0.0), "must be positive and finite, got 0.0"),
        (lambda: Measurement(("a",), np.zeros(2), float("inf")), "must be positive and finite"),
        (
            lambda: fit({"a": 2}, [Measurement(("z",), np.zeros(2), 1.0)]),
            "names 'z', which is not in the domain",
        ),
        (lambda: fit({"a": 2}, [Measurement(("a",), np.zeros(3), 1.0)]), "has 2 cells, its measurement 3"),
    ],
)
def test_invalid_measurements_are_named(measurement, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=sentence):
        measurement()


def test_the_same_call_gives_the_same_bytes() -> None:
    sizes = {"a": 3, "b": 4}
    measurements = [Measurement(("a", "b"), np.arange(12.0), 3.0)]
    models: list[Model] = [fit(sizes, measurements) for _ in range(2)]
    assert models[0].to_bytes() == models[1].to_bytes()
