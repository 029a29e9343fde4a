"""Belief propagation against the joint distribution, step by step, with steps as large as they may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.mrf import schedule
from synth.mrf.factor import Factor
from synth.mrf.junction_tree import junction_tree
from synth.mrf.levels import Chains
from synth.mrf.propagation import Propagation, home
from tests.synth.mrf.problems import Array, cliques_of, domains, joint, project


def _distinct(sizes: dict[str, int], cliques: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    stripped = [tuple(name for name in sizes if name in clique and sizes[name] > 1) for clique in cliques]
    return sorted({clique for clique in stripped if clique})


def _in_domain_order(
    work: Propagation, cliques: list[tuple[str, ...]], flat: Array
) -> dict[tuple[str, ...], Array]:
    return {
        clique: Factor(layout, view).project(clique).values.reshape(-1)
        for clique, layout, view in zip(cliques, work.layouts, work.views(flat), strict=True)
    }


@given(st.data(), st.floats(0.01, 1.0))
def test_marginals_follow_every_step(data: st.DataObject, size: float) -> None:
    sizes = data.draw(domains())
    cliques = _distinct(sizes, data.draw(cliques_of(sizes)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    total = float(rng.uniform(1, 1e6))
    work = Propagation(junction_tree(sizes, cliques), Chains(sizes, {}), cliques, total)
    theta = rng.normal(0, 3, work.marginals.size)
    work.start([Factor(layout, view) for layout, view in zip(work.layouts, work.views(theta), strict=True)])

    def check(potentials: Array) -> None:
        table = joint(sizes, _in_domain_order(work, cliques, potentials), total)
        for layout, margin in zip(work.layouts, work.views(work.marginals), strict=True):
            np.testing.assert_allclose(
                margin.reshape(-1), project(sizes, table, layout), rtol=1e-7, atol=1e-9 * total
            )

    check(theta)
    for kept in (True, False, True, True, False):
        step = np.clip(rng.normal(0, size * work.bound, theta.size), -work.bound, work.bound)
        work.evaluate(step)
        check(theta + step)
        if kept:
            work.accept()
            theta += step


@pytest.mark.parametrize("call_cells", [-(10**9), 0, 10**9])
def test_every_schedule_gives_the_same_marginals(call_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging all scopes inside a clique, some, or only nested ones: three ways to multiply the same factors."""
    monkeypatch.setattr(schedule, "CALL_CELLS", call_cells)
    sizes = {"a": 2, "b": 3, "c": 3, "d": 4, "e": 5, "f": 2, "g": 3}
    cliques = [
        ("a", "b"),
        ("b",),
        ("b", "c"),
        ("c", "d"),
        ("a", "d"),
        ("a", "c"),
        ("b", "d", "e"),
        ("d", "e"),
        ("e", "f"),
    ]
    rng = np.random.default_rng(7)
    work = Propagation(junction_tree(sizes, cliques), Chains(sizes, {}), cliques, 100.0)
    work.start([])
    theta = np.zeros_like(work.marginals)
    for _ in range(3):
        step = rng.uniform(-1, 1, theta.size)
        work.evaluate(step)
        work.accept()
        theta += step
        table = joint(sizes, _in_domain_order(work, cliques, theta), 100.0)
        for layout, margin in zip(work.layouts, work.views(work.marginals), strict=True):
            np.testing.assert_allclose(margin.reshape(-1), project(sizes, table, layout), rtol=1e-10)


def test_a_thousand_large_steps_one_way_and_back_stay_finite() -> None:
    sizes = {"a": 3, "b": 4, "c": 5}
    cliques = [("a", "b"), ("b", "c")]
    work = Propagation(junction_tree(sizes, cliques), Chains(sizes, {}), cliques, 1000.0)
    work.start([])
    rng = np.random.default_rng(3)
    step = np.where(rng.random(work.marginals.size) < 0.5, work.bound, -work.bound)
    for _ in range(1000):
        work.evaluate(step)
        work.accept()
        assert np.isfinite(work.marginals).all()
        for margin in work.views(work.marginals):
            assert margin.sum() == pytest.approx(1000.0)


def test_a_clique_outside_the_tree_is_refused() -> None:
    sizes = {"a": 2, "b": 2, "c": 2}
    with pytest.raises(ValueError, match=r"No clique of the model contains \(a, c\)"):
        home(junction_tree(sizes, [("a", "b"), ("b", "c")]), Chains(sizes, {}), ("a", "c"))
