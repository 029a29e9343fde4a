"""MWEM+PGM: budget exactly split and never exceeded, what is offered and how it is scored, what it learns."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency
from synth.algorithms.mwem.algorithm import ALGORITHM
from synth.algorithms.mwem.config import MwemConfig
from synth.algorithms.mwem.loop import run
from synth.budget.accounting import Accountant, rho_of
from synth.budget.charges import MAX_EPSILON
from synth.judgement.metrics import workload_error
from synth.workload import Workload
from tests.synth.chained import CODES, DOMAIN, LINKS, ROWS, WORKLOAD, planned
from tests.synth.oracles import RefuseThird, ScriptedOracle, codes_domain, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

plan_for = partial(planned, ALGORITHM, workload=WORKLOAD)


def test_the_papers_noise_on_what_the_total_leaves() -> None:
    plan = plan_for(MwemConfig(rounds=7))
    rho = 0.99 * float(rho_of(1.0, 1e-9))
    assert float(plan.sigma2) == pytest.approx(7 / rho, rel=1e-6)  # T / (2 (rho' / 2))
    assert float(plan.epsilon) == pytest.approx(math.sqrt(8 * rho / 14), rel=1e-6)
    assert float(plan.total_sigma2) == pytest.approx(0.99 / (2 * 0.01 * rho), rel=1e-6)
    assert plan.rounds == (7, 7) and set(plan.candidates) == set(WORKLOAD.cliques) and plan.uncovered == ()


@settings(max_examples=40)
@given(st.integers(1, 200), st.floats(0.01, 8), st.sampled_from(["add-remove", "replace"]), st.integers(1, 9))
def test_the_plan_spends_the_cap_and_not_more(
    rounds: int, epsilon: float, adjacency: Adjacency, rows: int
) -> None:
    workload = Workload(DOMAIN, (("a", "b"), ("b", "c")))  # d and e are in no clique
    plan = plan_for(MwemConfig(rounds=rounds), epsilon, adjacency, rows, workload=workload)
    assert plan.uncovered == (("d",), ("e",))
    spent = (
        plan.charges.counting(plan.total_sigma2)
        + 2 * plan.charges.measuring(plan.sigma2)
        + rounds * plan.round_cost(plan.sigma2, plan.epsilon)
    )
    assert spent <= plan.budget.rho_cap
    if plan.epsilon < MAX_EPSILON:
        assert spent >= plan.budget.rho_cap * (1 - Fraction(1, 10**8))
    assert plan == plan_for(MwemConfig(rounds=rounds), epsilon, adjacency, rows, workload=workload)


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize(("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 2)])
def test_a_run_spends_the_cap_to_within_a_hundredth(
    rounds: int, adjacency: Adjacency, unit_rows: int
) -> None:
    plan = plan_for(MwemConfig(rounds=rounds, prune=False), adjacency=adjacency, unit_rows=unit_rows)
    guard = Accountant(plan.budget)
    got = run(ideal(CODES, DOMAIN, guard, adjacency, unit_rows), plan)
    assert [e.what for e in guard.events] == ["total", *["select", "measure"] * rounds]
    assert len(got.selected) == rounds and [m.clique for m in got.measurements] == list(got.selected)
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 1.0, 10.0, 1000.0]), st.booleans(), st.integers(1, 9))
def test_the_cap_holds_whatever_the_answers_are(seed: int, epsilon: float, prune: bool, rounds: int) -> None:
    workload = Workload(DOMAIN, (("a", "b"), ("b", "c"), ("c", "d")))
    plan = plan_for(MwemConfig(rounds=rounds, prune=prune), epsilon, workload=workload)
    guard = Accountant(plan.budget)  # it refuses what exceeds either cap, and the run would fail
    run(ScriptedOracle(CODES, DOMAIN, guard, plan.charges, np.random.default_rng(seed)), plan)
    if epsilon <= 1:
        assert guard.rho >= plan.budget.rho_cap * (1 - Fraction(1, 10**8))


def test_scores_weigh_all_alike_and_offer_no_subsets() -> None:
    plan = plan_for(MwemConfig(rounds=3), epsilon=5.0)
    oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    assert set(got.selected) == LINKS  # without noise
    assert oracle.handles.count(("a", "b")) == 1  # shared once
    for cliques, weights, penalties, epsilon in oracle.selections:
        assert epsilon == plan.epsilon and set(cliques) == set(WORKLOAD.cliques) and set(weights) == {1}
        for clique, penalty in zip(cliques, penalties, strict=True):
            assert float(penalty) == pytest.approx(
                math.sqrt(2 / math.pi * float(plan.sigma2)) * DOMAIN.cells(clique), rel=1e-9
            )


def test_the_worst_cliques_are_selected_and_learned() -> None:
    plan = plan_for(MwemConfig(rounds=5), epsilon=10.0)
    got = run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan)
    assert {"a", "b", "c", "d"} <= {name for clique in got.selected for name in clique}
    assert got.noisy_total == pytest.approx(ROWS, abs=100) and got.rows == round(got.noisy_total)
    synthetic = got.model.sample(got.rows, np.random.default_rng(0))
    independent = np.stack([np.random.default_rng(j).permutation(CODES[:, j]) for j in range(5)], axis=1)
    error = workload_error(CODES, synthetic, DOMAIN, WORKLOAD.cliques)
    assert error < 0.06 < 0.5 < workload_error(CODES, independent, DOMAIN, WORKLOAD.cliques)


def test_columns_in_no_candidate_are_measured_before_the_rounds() -> None:
    skewed = np.where(np.random.default_rng(3).random(ROWS) < 0.9, 0, CODES[:, 3])
    codes = np.column_stack([CODES[:, :3], skewed, CODES[:, 4]])
    plan = plan_for(MwemConfig(rounds=2), 5.0, workload=Workload(DOMAIN, (("a", "b"), ("b", "c"))))
    guard = Accountant(plan.budget)
    got = run(ideal(codes, DOMAIN, guard), plan)
    assert [e.what for e in guard.events] == ["total", "measure", "select", "measure", "select", "measure"]
    assert [(m.clique, m.round) for m in got.measurements[:2]] == [(("d",), 0), (("e",), 0)]
    true = np.bincount(codes[:, 3], minlength=4)
    assert np.abs(got.model.marginal(("d",)) - true).sum() < 0.05 * ROWS < np.abs(ROWS / 4 - true).sum()


def test_a_workload_without_small_cliques_may_use_the_whole_model_at_once() -> None:
    domain = codes_domain(a=50, b=50, c=50)
    rng = np.random.default_rng(2)
    codes = np.repeat(rng.integers(0, 50, (ROWS, 1)), 3, axis=1)
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = plan_for(
        MwemConfig(rounds=4, max_model_mb=0.03, prune=False), 8.0, domain=domain, workload=workload
    )
    got = run(ideal(codes, domain, Accountant(plan.budget)), plan)
    assert (
        len(got.selected) == 4 and len(set(got.selected)) == 1
    )  # 0.03 MiB hold one pair of columns, never a tree of two


def test_oversized_cliques_are_named_and_their_columns_measured_alone() -> None:
    domain = codes_domain(a=300, b=300, c=3)
    plan = plan_for(
        MwemConfig(rounds=2, max_model_mb=0.1),
        domain=domain,
        workload=Workload.from_spec({"degree": 2}, domain),
    )
    assert plan.oversized == (("a", "b"),) and plan.uncovered == ()
    plan = plan_for(
        MwemConfig(rounds=2, max_model_mb=0.1), domain=domain, workload=Workload(domain, (("a", "b"),))
    )
    assert plan.oversized == (("a", "b"),) and plan.uncovered == plan.one_way and not plan.candidates
    guard = Accountant(plan.budget)
    got = run(ideal(np.zeros((500, 3), np.int64), domain, guard), plan)
    assert got.selected == () and guard.rho >= plan.budget.rho_cap * Fraction(99, 100)


def test_prune_asks_about_no_candidate_that_is_all_penalty() -> None:
    domain = codes_domain(a=300, b=300, c=3)
    codes = np.stack([np.arange(2000) % 300, np.arange(2000) % 300, np.arange(2000) % 3], axis=1)
    for prune in (True, False):
        plan = plan_for(
            MwemConfig(rounds=3, prune=prune),
            5.0,
            domain=domain,
            workload=Workload.from_spec({"degree": 2}, domain),
        )
        oracle = ScriptedOracle(codes, domain, Accountant(plan.budget), plan.charges)
        run(oracle, plan)
        assert [("a", "b") in cliques for cliques, *_ in oracle.selections] == [not prune] * 3
        assert (("a", "b") in oracle.handles) == (not prune)


def test_a_table_too_small_for_any_candidate_has_its_columns_measured() -> None:
    plan = plan_for(MwemConfig(rounds=6), epsilon=0.01)
    guard = Accountant(plan.budget)
    oracle = ScriptedOracle(CODES[:5], DOMAIN, guard, plan.charges)
    got = run(oracle, plan)
    assert got.selected == () and oracle.selections == [] and got.rows == 5
    assert [e.what for e in guard.events] == ["total", "measure"]
    assert plan.budget.rho_cap * (1 - Fraction(1, 10**8)) <= guard.rho <= plan.budget.rho_cap


def test_a_refused_release_ends_the_run_before_anything_else_is_asked() -> None:
    guard = RefuseThird()
    with pytest.raises(BudgetRefused, match="cap is reached"):
        run(ideal(CODES, DOMAIN, guard), plan_for(MwemConfig(rounds=5)))
    assert guard.asked == ["total", "select", "measure"]


def test_synthetic_rows_override_the_noisy_total() -> None:
    plan = plan_for(MwemConfig(rounds=1, synthetic_rows=77))
    assert run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan).rows == 77


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": None}, "rounds"),
        ({"rounds": True}, "rounds"),
        ({"max_model_mb": -1}, "max_model_mb"),
        ({"prune": 1}, "prune"),
        ({"synthetic_rows": 0}, "synthetic_rows"),
    ],
)
def test_a_wrong_table_is_refused_by_key(spec: dict[str, object], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        MwemConfig(**spec)  # type: ignore[arg-type]
    assert caught.value.sentence.startswith(f"The option {named} ")


def test_a_hopeless_epsilon_or_column_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="epsilon"):
        plan_for(MwemConfig(rounds=200), 1e-7)
    with pytest.raises(StudyInvalid, match="delta"):
        ALGORITHM.plan(DOMAIN, WORKLOAD, MwemConfig(), epsilon=1.0, delta=1e-16, adjacency="add-remove")
    domain = codes_domain(wide=600_000, a=2)
    with pytest.raises(StudyInvalid, match=r'"wide" alone \(600,000 values'):
        plan_for(MwemConfig(), domain=domain, workload=Workload(domain, (("a",),)))
