"""The plan re-spends the budget exactly, names what no model can hold, and lists the candidates that can win."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Adjacency
from synth.algorithms.aim.config import AimConfig
from synth.algorithms.aim.plan import AimPlan, plan
from synth.budget.accounting import rho_of
from synth.budget.charges import MAX_EPSILON
from synth.workload import Workload
from tests.synth.oracles import codes_domain

ADULT = dict(zip("abcdefghijklmn", (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2), strict=True))


def adult(
    config: AimConfig,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    unit_rows: int = 1,
) -> AimPlan:
    domain = codes_domain(**ADULT)
    workload = Workload.from_spec({"degree": 3, "count": 64, "seed": 123}, domain)
    return plan(
        domain, workload, config, epsilon=epsilon, delta=delta, adjacency=adjacency, unit_rows=unit_rows
    )


def test_fixed_rounds_have_the_papers_noise() -> None:
    fixed = adult(AimConfig(rounds=10))
    rho = float(rho_of(1.0, 1e-5))
    assert float(fixed.sigma2) == pytest.approx((10 + 14) / (2 * 0.9 * rho), rel=1e-8)
    assert float(fixed.epsilon) == pytest.approx(math.sqrt(8 * 0.1 * rho / 10), rel=1e-8)
    assert fixed.rounds == (10, 10) and fixed.least_sigma2 == fixed.sigma2
    assert sum(map(fixed.domain.cells, fixed.workload.closure)) == 2_870_490


@settings(max_examples=40)
@given(
    st.integers(1, 200),
    st.floats(0.01, 8),
    st.floats(0.01, 0.99),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 9),
)
def test_fixed_rounds_spend_the_cap_and_not_more(
    rounds: int, epsilon: float, share: float, adjacency: Adjacency, rows: int
) -> None:
    fixed = adult(AimConfig(rounds=rounds, select_share=share), epsilon, 1e-6, adjacency, rows)
    spent = 14 * fixed.charges.measuring(fixed.sigma2) + rounds * fixed.round_cost(
        fixed.sigma2, fixed.epsilon
    )
    assert spent <= fixed.budget.rho_cap
    if fixed.epsilon < MAX_EPSILON:
        assert spent >= fixed.budget.rho_cap * (1 - Fraction(1, 10**8))


def test_adaptive_starts_at_eight_rounds_per_column() -> None:
    adaptive = adult(AimConfig(rounds="adaptive"))
    rho = float(adaptive.budget.rho_cap)
    assert float(adaptive.sigma2) == pytest.approx(8 * 14 / (2 * 0.9 * rho), rel=1e-8)
    # without annealing each round costs rho/112, after 14 marginals of 0.9 rho/112 each: floor(112 - 12.6)
    assert adaptive.rounds == (4, 99)
    assert float(adaptive.least_sigma2) == pytest.approx(1 / (2 * 0.9 * rho * (1 - 12.6 / 112)), rel=1e-8)


def test_the_samplers_distance_is_small_and_known() -> None:
    for config in (AimConfig(rounds=10), AimConfig(rounds="adaptive")):
        budget = adult(config, 1.0, 1e-9).budget
        assert 0 < budget.beta_cap < Fraction(1, 10**12)
    with pytest.raises(StudyInvalid, match="delta"):
        adult(AimConfig(rounds="adaptive"), 1.0, 1e-15)


def test_extremes_of_epsilon_still_have_a_plan() -> None:
    assert adult(AimConfig(rounds=1, select_share=0.5), 1000.0).epsilon == MAX_EPSILON
    assert adult(AimConfig(rounds="adaptive"), 0.01).sigma2 > 10**6
    with pytest.raises(StudyInvalid, match="epsilon"):
        adult(AimConfig(rounds="adaptive"), 1e-5, 1e-9)
    assert (
        1
        <= adult(AimConfig(rounds="adaptive"), 1000.0).rounds[0]
        <= adult(AimConfig(rounds="adaptive"), 1000.0).rounds[1]
        <= 112
    )


def test_what_no_model_can_hold_is_no_candidate_and_named() -> None:
    fixed = adult(AimConfig(rounds=10))
    most = 4 * 2**20 // 8
    assert all(cells <= most for cells in fixed.candidates.values())
    assert (
        set(fixed.oversized) == {q for q in fixed.workload.cliques if fixed.domain.cells(q) > most} != set()
    )
    assert set(fixed.workload.closure) - set(fixed.candidates) == set(
        fixed.oversized
    )  # here no pair of columns is too large


def test_a_column_or_clique_beyond_all_measure_is_refused() -> None:
    domain = codes_domain(wide=600_000, a=2)
    with pytest.raises(StudyInvalid, match=r'"wide" alone \(600,000 values'):
        plan(
            domain,
            Workload(domain, (("a",),)),
            AimConfig(rounds="adaptive"),
            epsilon=1,
            delta=1e-9,
            adjacency="replace",
        )
    domain = codes_domain(a=300, b=300, c=300)
    with pytest.raises(StudyInvalid, match="a, b, c has 27000000 cells"):
        plan(
            domain,
            Workload(domain, (("a", "b", "c"),)),
            AimConfig(rounds="adaptive"),
            epsilon=1,
            delta=1e-9,
            adjacency="replace",
        )


def test_pruning_drops_exactly_what_cannot_score_above_zero() -> None:
    pruned, whole = adult(AimConfig(rounds=10)), adult(AimConfig(rounds=10, prune=False))
    total = 48_842.3
    kept = pruned.shared(total)
    for clique, cells in pruned.candidates.items():
        assert (clique in kept) == (math.sqrt(2 / math.pi * float(pruned.sigma2)) * cells <= 2 * total)
    assert sum(pruned.candidates[q] for q in kept) == 108_710  # the figure of `docs/design/algorithms.md` 4
    assert whole.shared(total) == list(whole.candidates)
    # prune decides nothing else, and nothing when everything can win
    assert replace(pruned, config=whole.config) == whole
    assert pruned.shared(1e12) == whole.shared(1e12)
    assert pruned.shared(-5.0) == []


def test_adaptive_shares_what_can_win_at_the_smallest_noise_it_can_reach() -> None:
    adaptive = adult(AimConfig(rounds="adaptive"))
    first, all_shared = adaptive.can_win(adaptive.sigma2, 48_842.0), adaptive.shared(48_842.0)
    assert set(first) < set(all_shared) == set(adaptive.can_win(adaptive.least_sigma2, 48_842.0))


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 1.5}, "rounds"),
        ({"rounds": "many"}, "rounds"),
        ({"rounds": True}, "rounds"),
        ({"rounds": None}, "rounds"),
        ({"rounds": 10**9}, "rounds"),
        ({"max_model_mb": 0}, "max_model_mb"),
        ({"max_model_mb": "4"}, "max_model_mb"),
        ({"max_model_mb": math.inf}, "max_model_mb"),
        ({"select_share": 0}, "select_share"),
        ({"select_share": 1.0}, "select_share"),
        ({"select_share": math.nan}, "select_share"),
        ({"prune": 1}, "prune"),
        ({"synthetic_rows": 0}, "synthetic_rows"),
        ({"synthetic_rows": 2.0}, "synthetic_rows"),
    ],
)
def test_a_wrong_table_is_refused_by_key(spec: dict[str, Any], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        AimConfig(**spec)
    assert named in caught.value.sentence


def test_the_table_of_the_contract() -> None:
    spec: dict[str, Any] = {
        "rounds": 10,
        "select_share": 0.1,
        "prune": True,
        "max_model_mb": 4,
        "synthetic_rows": 45000,
    }
    assert AimConfig(**spec).public() == spec and set(AimConfig.options()) == set(spec)
    assert AimConfig().public() == {key: spec[key] for key in spec if key != "synthetic_rows"}
    assert AimConfig().fixed_rounds == 10 and AimConfig(rounds="adaptive").fixed_rounds is None
