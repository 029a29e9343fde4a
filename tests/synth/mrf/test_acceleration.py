"""Steps that the last ones predict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.mrf.acceleration import STEPS, Memory


@settings(deadline=None)
@given(st.integers(1, STEPS + 5), st.integers(0, 2**32 - 1))
def test_the_combination_is_the_least_squares_solution_over_the_last_steps(steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory, cells = Memory(60), 60
    known = [(rng.normal(size=cells), rng.normal(size=cells)) for _ in range(steps)]
    for step, change in known:
        memory.add(step, change)
    residuals = rng.normal(size=cells)
    found = memory.best(residuals)
    assert found is not None
    last = known[-STEPS:]
    changes = np.stack([change for _, change in last], axis=1)
    shares = np.linalg.lstsq(changes, -residuals)[0]
    np.testing.assert_allclose(found[1], residuals + changes @ shares, atol=1e-5)
    np.testing.assert_allclose(found[0], np.stack([s for s, _ in last], axis=1) @ shares, atol=1e-4)


def test_a_linear_problem_is_solved_once_the_steps_span_it() -> None:
    rng = np.random.default_rng(1)
    matrix, goal = rng.normal(size=(5, 5)), rng.normal(size=5)
    memory, at = Memory(5), np.zeros(5)
    for step in np.eye(5):
        memory.add(step, matrix @ step)
    found = memory.best(matrix @ at - goal)
    assert found is not None
    assert matrix @ (at + found[0]) == pytest.approx(goal, abs=1e-6)


def test_a_step_that_changes_nothing_is_not_kept_and_what_is_forgotten_says_nothing() -> None:
    memory = Memory(3)
    memory.add(np.ones(3), np.zeros(3))
    assert memory.best(np.ones(3)) is None
    memory.add(np.ones(3), np.ones(3))
    memory.forget()
    assert memory.best(np.ones(3)) is None
