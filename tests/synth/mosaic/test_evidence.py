"""Evidence of dependence: joint marginals that are little but noise are shrunk, and a trial that finds
nothing ends the run."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle, Level, unobserved
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.config import MosaicConfig
from synth.algorithms.mosaic.evidence import Joint, beside_columns, evidence
from synth.algorithms.mosaic.loop import NOISE_LIMIT, MosaicRun
from synth.algorithms.mosaic.small import PICKS
from synth.budget.accounting import Accountant
from synth.budget.small.small_table import Bought
from synth.mrf import Measurement, fit
from synth.run import ROUND_ITERATIONS
from synth.synthesis import Measured, Synthesis
from synth.workload import Workload
from tests.synth.mosaic.scripted import LayeredOracle
from tests.synth.oracles import codes_domain

SHAPE = (4, 5, 3)
ROWS = np.array([0.1, 0.2, 0.3, 0.4])[:, None, None]
INDEPENDENT = 6000 * np.broadcast_to(ROWS, SHAPE) / 15


def joint(values: NDArray[np.float64], sigma2: int = 100) -> Joint:
    counts = np.rint(values).astype(np.int64).reshape(-1)
    return Joint(Measured(("a", "b", "c"), Fraction(sigma2), 1, counts), INDEPENDENT)


def test_noise_alone_is_evidence_of_about_one_and_is_shrunk_away() -> None:
    rng = np.random.default_rng(1)
    noisy = [joint(INDEPENDENT + rng.normal(0, 10, SHAPE)) for _ in range(200)]
    assert all(one.freedom == 60 - 1 - 3 - 4 - 2 for one in noisy)
    assert evidence(noisy) == pytest.approx(1, abs=0.05)  # 10,000 degrees of freedom: a deviation of 0.014
    assert evidence([]) == 0.0
    lost = [float(np.square(one.shrunk() - INDEPENDENT.reshape(-1)).mean()) for one in noisy]
    assert np.mean(lost) < 0.35 * 100  # 10 of 60 directions are the columns' own


def test_a_shrunk_marginal_keeps_the_sums_of_its_columns() -> None:
    one = joint(INDEPENDENT + np.random.default_rng(2).normal(0, 14, SHAPE))
    assert 0 < one.factor < 1
    measured, shrunk = one.measured.values.reshape(SHAPE), one.shrunk().reshape(SHAPE)
    for others in ((1, 2), (0, 2), (0, 1)):
        np.testing.assert_allclose(shrunk.sum(axis=others), measured.sum(axis=others))
    assert not np.allclose(shrunk, measured, atol=1)


def test_strong_dependence_is_believed() -> None:
    dependent = np.zeros(SHAPE)
    dependent[[0, 1, 2, 3], [0, 1, 2, 3], 0] = 1500
    one = joint(dependent)
    assert one.factor > 0.999 and evidence([one]) > 1000
    np.testing.assert_allclose(one.shrunk(), dependent.reshape(-1), atol=1)


def test_exact_independence_has_nothing_to_shrink() -> None:
    one = joint(INDEPENDENT)
    assert one.size == 0 and one.factor == 0
    np.testing.assert_allclose(one.shrunk(), INDEPENDENT.reshape(-1))


def test_a_marginal_over_bins_stands_beside_the_product_of_its_bins() -> None:
    halves = Level("a/2", "a", (0, 0, 1, 1))
    columns = [
        Measurement(("a",), np.array([10.0, 20, 30, 40]), 1.0),
        Measurement(("b",), np.ones(2) * 50, 1.0),
    ]
    model = fit({"a": 4, "b": 2}, columns, total=100.0, levels={"a/2": halves})
    found = beside_columns(Measured(("a/2", "b"), Fraction(1), 1, np.zeros(4, np.int64), (halves,)), model)
    np.testing.assert_allclose(found.expected, [[15, 15], [35, 35]], rtol=1e-3)


DOMAIN = codes_domain(a=4, b=4, c=3, d=3, e=2)
WORKLOAD = Workload.from_spec({"degree": 2}, DOMAIN)
PLAN = ALGORITHM.plan(DOMAIN, WORKLOAD, MosaicConfig(), epsilon=1.45, delta=1e-6, adjacency="add-remove")
FEW = 288
"""Rows at which PLAN makes a trial: one of each kind."""


class PairsFirst(LayeredOracle):
    """Picks pairs, the strongest or not: what noise may do."""

    def select(self, handles: Sequence[Handle], *arguments: Any) -> list[int]:
        super().select(handles, *arguments)  # which charges for them
        return [place for place, handle in enumerate(handles) if len(self.handles[handle]) > 1][:PICKS]


def tried(dependent: bool) -> tuple[Synthesis, Accountant, list[dict[str, object]]]:
    """A run whose answers have no noise, on FEW rows."""
    codes = np.stack(np.unravel_index(np.arange(FEW), tuple(DOMAIN.sizes.values())), axis=1)
    if dependent:
        codes[:, 1] = codes[:, 0]
        codes[:, 2] = codes[:, 3] = np.minimum(codes[:, 0], 2)
        codes[:, 4] = codes[:, 0] // 2
    guard, told = Accountant(PLAN.budget), list[dict[str, object]]()
    oracle = PairsFirst(codes.astype(np.int64), DOMAIN, guard, PLAN.charges)
    found = ALGORITHM.run(oracle, PLAN, lambda _, event, **fields: told.append({"event": event, **fields}))
    return found, guard, told


def test_a_trial_that_finds_no_dependence_leaves_the_rest_to_the_columns_and_says_so() -> None:
    found, guard, told = tried(dependent=False)
    assert len(found.selected) == PICKS and sum(len(m.columns) > 1 for m in found.measurements) == PICKS
    assert [event.what for event in guard.events] == [
        "measure",
        "measure",
        *["select"] * PICKS,
        "measure",
        "measure",
    ]
    assert PLAN.budget.rho_cap * Fraction(99, 100) <= guard.rho <= PLAN.budget.rho_cap
    assert found.noise_share is not None and found.noise_share > NOISE_LIMIT
    assert found.fallback is not None and "the few that were tried" in found.fallback
    assert any(one["event"] == "fallback" for one in told)
    a, b = (found.model.marginal((name,)) for name in "ab")
    np.testing.assert_allclose(
        found.model.marginal(("a", "b")), np.outer(a, b).reshape(-1) / found.model.total
    )


def test_a_trial_that_finds_dependence_goes_on() -> None:
    found, guard, _ = tried(dependent=True)
    assert found.fallback is None and len(found.selected) > PICKS
    assert guard.rho <= PLAN.budget.rho_cap
    diagonal = found.model.marginal(("a", "b")).reshape(4, 4).trace()
    assert diagonal > 0.9 * found.model.total


def test_a_run_whose_last_batch_shows_no_dependence_any_more_has_independent_columns_as_it_says() -> None:
    codes = np.stack(np.unravel_index(np.arange(FEW), tuple(DOMAIN.sizes.values())), axis=1)
    guard = Accountant(PLAN.budget)
    run = MosaicRun(PairsFirst(codes.astype(np.int64), DOMAIN, guard, PLAN.charges), PLAN, unobserved)
    run.measure_all_columns()
    run.choose_resolutions()
    run.refit(0, ROUND_ITERATIONS)

    def goes_on(bought: Sequence[Bought], price: Fraction) -> bool:
        if run.left > PLAN.budget.rho_cap / 1000:
            return True
        run.fall_back()
        return False

    run.adaptive(*PLAN.pick_rho, PICKS, goes_on)
    run.finish()
    found = run.synthesis()
    assert found.fallback is not None and any(len(m.clique) > 1 for m in found.measurements)
    assert all(len(clique) == 1 for clique in found.model.cliques)
