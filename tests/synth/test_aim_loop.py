"""AIM's run on scripted and ideal oracles: budget, order of questions, what it selects and what it learns."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Adjacency
from synth.algorithms.aim.algorithm import ALGORITHM
from synth.algorithms.aim.config import AimConfig
from synth.algorithms.aim.loop import run
from synth.budget.accounting import Accountant
from synth.judgement.metrics import workload_error
from synth.workload import Workload
from tests.synth.chained import CODES, DOMAIN, LINKS, ROWS, WORKLOAD, planned
from tests.synth.oracles import RefuseThird, ScriptedOracle, codes_domain, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

plan_for = partial(planned, ALGORITHM, workload=WORKLOAD)


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize(("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 2)])
def test_fixed_rounds_spend_the_cap_to_within_a_hundredth(
    rounds: int, adjacency: Adjacency, unit_rows: int
) -> None:
    plan = plan_for(AimConfig(rounds=rounds, prune=False), adjacency=adjacency, unit_rows=unit_rows)
    guard = Accountant(plan.budget)
    got = run(ideal(CODES, DOMAIN, guard, adjacency, unit_rows), plan)
    assert [e.what for e in guard.events] == ["measure", *["select", "measure"] * rounds]
    assert len(got.selected) == rounds
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 1.0, 10.0, 1000.0]), st.booleans())
def test_adaptive_rounds_never_exceed_the_cap_whatever_the_answers(
    seed: int, epsilon: float, prune: bool
) -> None:
    plan = plan_for(AimConfig(rounds="adaptive", prune=prune), epsilon)
    guard = Accountant(plan.budget)  # it refuses what exceeds either cap, and the run would fail
    oracle = ScriptedOracle(CODES, DOMAIN, guard, plan.charges, np.random.default_rng(seed))
    got = run(oracle, plan)
    assert len(got.selected) <= plan.rounds[1]
    if epsilon <= 1:  # above, noise and epsilon end at the mechanisms' limits before the budget does
        assert guard.rho >= plan.budget.rho_cap * (1 - Fraction(1, 10**8))


def test_annealing_spends_everything_in_the_planned_number_of_rounds() -> None:
    plan = plan_for(AimConfig(rounds="adaptive"))
    guard = Accountant(plan.budget)
    run(ideal(CODES, DOMAIN, guard), plan)
    rounds = sum(e.what == "select" for e in guard.events)
    assert plan.rounds[0] <= rounds <= plan.rounds[1]
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    sigmas = [Fraction(str(e.detail["sigma2"])) for e in guard.events if e.what == "measure"]
    assert sigmas == sorted(sigmas, reverse=True) and sigmas[-1] < sigmas[0]


def test_the_worst_approximated_marginals_are_selected_and_learned() -> None:
    plan = plan_for(AimConfig(rounds=4), epsilon=10.0)
    got = run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan)
    # three links explain everything; at this budget no noise hides them, whichever pairs of the chain are
    # taken first
    assert {"a", "b", "c", "d"} == {name for clique in got.selected[:3] for name in clique}
    assert got.noisy_total == pytest.approx(ROWS, abs=50) and got.rows == round(got.noisy_total)
    synthetic = got.model.sample(got.rows, np.random.default_rng(0))
    independent = np.stack([np.random.default_rng(j).permutation(CODES[:, j]) for j in range(5)], axis=1)
    error = workload_error(CODES, synthetic, DOMAIN, WORKLOAD.cliques)
    assert error < 0.04 < 0.5 < workload_error(CODES, independent, DOMAIN, WORKLOAD.cliques)


def test_scores_grow_with_the_distance_and_fall_with_the_penalty() -> None:
    plan = plan_for(AimConfig(rounds=3), epsilon=5.0)
    oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    assert (
        set(got.selected) == LINKS
    )  # without noise, the direct links are the worst approximated at each step
    cliques, weights, penalties, epsilon = oracle.selections[0]
    assert epsilon == plan.epsilon and set(cliques) == set(WORKLOAD.closure)
    for clique, weight, penalty in zip(cliques, weights, penalties, strict=True):
        assert weight == (4 if len(clique) == 1 else 8)  # each column is in four of the ten pairs
        assert float(penalty) == pytest.approx(
            math.sqrt(2 / math.pi * float(plan.sigma2)) * DOMAIN.cells(clique), rel=1e-9
        )


def test_a_refused_release_ends_the_run_before_anything_else_is_asked() -> None:

    guard = RefuseThird()
    with pytest.raises(BudgetRefused, match="cap is reached"):
        run(ideal(CODES, DOMAIN, guard), plan_for(AimConfig(rounds=5)))
    assert guard.asked == ["measure", "select", "measure"]


def test_prune_leaves_the_run_alone_where_everything_can_win() -> None:
    asked = []
    for prune in (True, False):
        plan = plan_for(AimConfig(rounds=4, prune=prune), epsilon=4.0)
        oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
        got = run(oracle, plan)
        asked.append((oracle.selections, got.selected))
    assert asked[0] == asked[1]


def test_prune_asks_about_no_candidate_that_is_all_penalty() -> None:
    domain = codes_domain(a=300, b=300, c=3)
    codes = np.stack([np.arange(2000) % 300, np.arange(2000) % 300, np.arange(2000) % 3], axis=1)
    for prune in (True, False):
        plan = plan_for(
            AimConfig(rounds=3, prune=prune),
            domain=domain,
            workload=Workload.from_spec({"degree": 2}, domain),
        )
        oracle = ScriptedOracle(codes, domain, Accountant(plan.budget), plan.charges)
        run(oracle, plan)
        offered = [("a", "b") in cliques for cliques, *_ in oracle.selections]
        assert offered == [not prune] * 3
        assert (("a", "b") in oracle.handles) == (not prune)


@pytest.mark.parametrize("rounds", [6, "adaptive"])
def test_a_table_too_small_for_any_candidate_has_its_columns_sharpened(rounds: int | str) -> None:
    plan = plan_for(AimConfig(rounds=rounds), epsilon=0.01)
    guard = Accountant(plan.budget)
    oracle = ScriptedOracle(CODES[:5], DOMAIN, guard, plan.charges)
    got = run(oracle, plan)
    assert got.selected == () and oracle.selections == [] and got.rows == 5
    assert [e.what for e in guard.events] == ["measure", "measure"]
    assert plan.budget.rho_cap * (1 - Fraction(1, 10**8)) <= guard.rho <= plan.budget.rho_cap
    assert [m.round for m in got.measurements] == [0] * 5 + [1] * 5


def test_an_empty_table_gives_a_model_and_no_rows() -> None:
    plan = plan_for(AimConfig(rounds=2), epsilon=1.0)
    totals = [run(ideal(CODES[:0], DOMAIN, Accountant(plan.budget)), plan).rows for _ in range(4)]
    assert all(0 <= rows < 300 for rows in totals)  # the noisy total's sd is about 15 here


def test_synthetic_rows_override_the_noisy_total() -> None:
    plan = plan_for(AimConfig(rounds=1, synthetic_rows=77))
    assert run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan).rows == 77


def test_the_model_stays_within_its_share_of_max_model_mb() -> None:
    domain = codes_domain(a=60, b=60, c=60, d=60)
    rng = np.random.default_rng(5)
    first = rng.integers(0, 60, ROWS)
    codes = np.stack(
        [first, (first + rng.integers(0, 2, ROWS)) % 60, first, rng.integers(0, 60, ROWS)], axis=1
    )
    seen: list[tuple[float, float]] = []

    def observe(phase: str, event: str, **fields: object) -> None:
        json.dumps(fields)  # every field must be fit for events.jsonl
        if event == "measured":
            spent.append(fields["rho_spent"] / fields["rho"])  # type: ignore[operator]
        if event == "fitted":
            seen.append((fields["model_mb"], spent[-1]))  # type: ignore[arg-type]

    for limit in (0.05, 1.0):
        spent: list[float] = []
        seen.clear()
        plan = plan_for(
            AimConfig(rounds=6, max_model_mb=limit, prune=False),
            epsilon=20.0,
            domain=domain,
            workload=Workload.from_spec({"degree": 2}, domain),
        )
        got = run(ideal(codes, domain, Accountant(plan.budget)), plan, observe)
        assert len(got.selected) == 6 and len(seen) == 7
        assert all(mb <= limit * share + 1e-9 for mb, share in seen[1:])
        # 0.05 MiB are 6,553 cells: one pair of columns (3,600 cells), never a tree of two
        assert (len({q for q in got.selected if len(q) == 2}) > 1) == (limit == 1.0)
