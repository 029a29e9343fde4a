"""A model given values of columns is the joint distribution, cut and scaled; its rows follow it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.functionality import Clique, Level
from synth.mrf import Model, conditional
from tests.synth.mrf.problems import cells, cliques_of, domains, joint, project


@given(st.data(), st.sampled_from([0.0, 1.0, 30.0]))
def test_it_is_the_joint_distribution_without_the_other_rows(data: st.DataObject, spread: float) -> None:
    sizes = data.draw(domains())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    potentials = {}
    for clique in data.draw(cliques_of(sizes)):
        ordered = tuple(name for name in sizes if name in clique and sizes[name] > 1)
        if ordered:
            potentials[ordered] = rng.normal(0, spread, cells(sizes, ordered))
    names = data.draw(st.lists(st.sampled_from(list(sizes)), unique=True, max_size=3))
    allowed = {name: rng.random(sizes[name]) < 0.5 for name in names}
    for name in names:
        allowed[name][rng.integers(sizes[name])] = True
    table = joint(sizes, potentials, 500.0)
    for axis, name in enumerate(sizes):
        if name in allowed:
            shape = [1] * len(sizes)
            shape[axis] = sizes[name]
            table = table * allowed[name].reshape(shape)
    rows = table.sum()
    if rows < 1e-200:
        return
    made = conditional.given(Model(sizes, 500.0, potentials), allowed)
    assert made.total == pytest.approx(max(1.0, rows), rel=1e-6)
    for name in sizes:
        for other in sizes:
            query = (name, other) if name != other else (name,)
            np.testing.assert_allclose(
                made.marginal(query) / made.total, project(sizes, table / rows, query), rtol=1e-6, atol=1e-12
            )
    drawn = made.sample(50, rng)
    for name, codes in allowed.items():
        assert codes[drawn[:, list(sizes).index(name)]].all()


def test_rows_follow_the_conditional_distribution() -> None:
    """Chi-square over all cells of the columns left. Systematic draws vary less than independent ones, so the
    upper tail of independent ones bounds the false alarms: 1e-9."""
    rng = np.random.default_rng(11)
    sizes = {"a": 3, "b": 4, "c": 2, "d": 3}
    potentials: dict[Clique, NDArray[np.float64]] = {
        ("a", "b"): rng.normal(0, 1, 12),
        ("b", "c"): rng.normal(0, 1, 8),
        ("c", "d"): rng.normal(0, 1, 6),
    }
    table = joint(sizes, potentials, 1.0)[1:, :, :, 2]
    made = conditional.given(Model(sizes, 900.0, potentials), {"d": np.arange(3) == 2, "a": np.arange(3) > 0})
    rows = made.sample(20_000, rng)
    assert set(rows[:, 3]) == {2} and set(rows[:, 0]) == {1, 2}
    counts = np.zeros((2, 4, 2))
    np.add.at(counts, (rows[:, 0] - 1, rows[:, 1], rows[:, 2]), 1)
    expected = 20_000 * table / table.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < stats.chi2.isf(1e-9, counts.size - 1)


def test_a_column_that_the_model_holds_over_bins_is_cut_by_its_values() -> None:
    level = Level("age/2", "age", (0, 0, 1, 1))
    model = Model({"age": 4, "sex": 2}, 100.0, {("age/2", "sex"): np.array([0.0, 1, 2, 0])}, {"age/2": level})
    made = conditional.given(model, {"age": np.array([False, True, True, False])})
    assert made.marginal(("age",)) == pytest.approx(
        np.array([0, 1, 1, 0]) * model.marginal(("age",)) * made.total / model.marginal(("age",))[1:3].sum()
    )


def test_what_no_row_has_is_refused() -> None:
    model = Model({"a": 2, "b": 2}, 10.0, {("a", "b"): np.array([0.0, -2e3, -2e3, 0.0])})
    with pytest.raises(ValueError, match="No row"):
        conditional.given(model, {"a": np.array([True, False]), "b": np.array([False, True])})
    with pytest.raises(ValueError, match="no column"):
        conditional.given(model, {"z": np.array([True])})
