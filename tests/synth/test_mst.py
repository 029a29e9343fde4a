"""MST: budget in thirds and never exceeded, a spanning tree by maximum dependence, forests where the model
ends."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency
from synth.algorithms.mst.algorithm import ALGORITHM
from synth.algorithms.mst.config import MstConfig
from synth.algorithms.mst.loop import run
from synth.budget.accounting import Accountant, rho_of
from synth.budget.charges import MAX_EPSILON
from synth.domain import Domain
from synth.judgement.metrics import marginal, workload_error
from synth.mrf import model_size_mb
from tests.synth.chained import CODES, DOMAIN, LINKS, ROWS, planned
from tests.synth.oracles import RefuseThird, ScriptedOracle, codes_domain, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

plan_for = partial(planned, ALGORITHM)


def dependence(codes: NDArray[np.int64], domain: Domain) -> nx.Graph:
    """Every pair's exact L1 distance from independence: an oracle that shares nothing with the product but
    the counting."""
    graph = nx.Graph()
    for a, b in itertools.combinations(domain.names, 2):
        joint = marginal(codes, domain, (a, b)).reshape(domain[a].size, domain[b].size)
        graph.add_edge(
            a, b, weight=float(np.abs(joint - np.outer(joint.sum(1), joint.sum(0)) / joint.sum()).sum())
        )
    return graph


def test_thirds_of_the_budget() -> None:
    plan = plan_for()
    rho = float(rho_of(1.0, 1e-9))
    assert float(plan.sigma2) == pytest.approx(3 * 5 / (2 * rho), rel=1e-6)
    assert float(plan.epsilon) == pytest.approx(math.sqrt(8 * rho / (3 * 4)), rel=1e-6)
    assert float(plan.pair_sigma2(plan.budget.rho_cap / 3, 4)) == pytest.approx(3 * 4 / (2 * rho), rel=1e-6)
    assert (
        plan.rounds == (4, 4)
        and set(plan.candidates) == set(itertools.combinations("abcde", 2))
        and plan.oversized == ()
    )
    assert plan == plan_for()


@pytest.mark.parametrize(("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 1), ("replace", 3)])
def test_a_run_spends_the_cap_to_within_a_hundredth(adjacency: Adjacency, unit_rows: int) -> None:
    plan = plan_for(adjacency=adjacency, unit_rows=unit_rows)
    guard = Accountant(plan.budget)
    got = run(ideal(CODES, DOMAIN, guard, adjacency, unit_rows), plan)
    assert [e.what for e in guard.events] == ["measure", *["select"] * 4, "measure"]
    assert [(m.clique, m.round) for m in got.measurements[5:]] == [
        (pair, i) for i, pair in enumerate(got.selected, 1)
    ]
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.05, 1.0, 10.0, 1000.0]),
    st.sampled_from([4, 0.0008, 0.0004]),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 5),
)
def test_any_answers_give_a_forest_within_the_cap_and_the_model(
    seed: int, epsilon: float, limit: float, adjacency: Adjacency, rows: int
) -> None:
    plan = plan_for(MstConfig(max_model_mb=limit), epsilon, adjacency, rows)
    guard = Accountant(plan.budget)  # it refuses what exceeds either cap, and the run would fail
    got = run(ScriptedOracle(CODES, DOMAIN, guard, plan.charges, np.random.default_rng(seed)), plan)
    graph = nx.Graph(list(got.selected))
    assert nx.is_forest(graph) and graph.number_of_edges() == len(got.selected)
    assert plan.rounds[0] <= len(got.selected) <= plan.rounds[1]
    assert model_size_mb(DOMAIN.sizes, got.selected) <= limit
    if limit == 4:
        assert len(got.selected) == 4
    assert guard.rho >= plan.budget.rho_cap * (
        1 - Fraction(1, 10**8)
    )  # what selections leave goes to the pairs


def test_without_noise_the_tree_is_the_maximum_spanning_tree() -> None:
    rng = np.random.default_rng(8)
    for sizes in ((3, 4, 2, 5, 3, 2), (2, 2, 2, 2, 2, 2, 2)):
        domain = codes_domain(**{f"x{i}": size for i, size in enumerate(sizes)})
        columns = [rng.integers(0, sizes[0], 4000)]
        for size in sizes[1:]:
            source = columns[rng.integers(len(columns))]
            columns.append(
                np.where(rng.random(4000) < rng.uniform(0.2, 0.9), source % size, rng.integers(0, size, 4000))
            )
        codes = np.stack(columns, axis=1).astype(np.int64)
        plan = plan_for(epsilon=50.0, domain=domain)
        oracle = ScriptedOracle(codes, domain, Accountant(plan.budget), plan.charges)
        tree = nx.maximum_spanning_tree(dependence(codes, domain))
        assert {frozenset(pair) for pair in run(oracle, plan).selected} == {
            frozenset(edge) for edge in tree.edges
        }
        for number, (pairs, weights, penalties, epsilon) in enumerate(oracle.selections):
            assert set(weights) == {1} and set(penalties) == {0} and epsilon == plan.epsilon
            assert len(pairs) <= len(plan.candidates) - number
        assert len(oracle.handles) == len(sizes) + len(plan.candidates)  # everything is shared once


def test_the_links_of_a_chain_are_found_and_learned() -> None:
    # at this budget a link is ahead of the best other pair by more than 100 Gumbel scales
    plan = plan_for(epsilon=10.0)
    got = run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan)
    assert set(got.selected) > LINKS and len(got.selected) == 4
    assert got.noisy_total == pytest.approx(ROWS, abs=50) and got.rows == round(got.noisy_total)
    synthetic = got.model.sample(got.rows, np.random.default_rng(0))
    pairs = list(itertools.combinations(DOMAIN.names, 2))
    independent = np.stack([np.random.default_rng(j).permutation(CODES[:, j]) for j in range(5)], axis=1)
    error = workload_error(CODES, synthetic, DOMAIN, pairs)
    assert error < 0.04 < 0.5 < workload_error(CODES, independent, DOMAIN, pairs)


def test_a_pair_too_large_for_the_model_is_named_and_never_offered() -> None:
    domain = codes_domain(a=300, b=300, c=3, d=2)
    codes = np.stack(
        [np.arange(2000) % 300, np.arange(2000) % 300, np.arange(2000) % 3, np.arange(2000) % 2], axis=1
    )
    plan = plan_for(MstConfig(max_model_mb=0.1), domain=domain)
    assert plan.oversized == (("a", "b"),) and plan.rounds == (3, 3)
    oracle = ScriptedOracle(codes, domain, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    assert len(got.selected) == 3 and ("a", "b") not in oracle.handles


def test_where_no_tree_fits_there_is_a_forest_and_its_pairs_get_the_rest() -> None:
    domain = codes_domain(a=40, b=40, c=40, d=40)
    codes = np.repeat(np.random.default_rng(1).integers(0, 40, (3000, 1)), 4, axis=1)
    for limit, edges in ((0.0135, 1), (0.026, 2), (0.05, 3)):  # cells: 1,769; 3,407; 6,553; a pair has 1,600
        plan = plan_for(MstConfig(max_model_mb=limit), domain=domain)
        assert plan.rounds == ((3, 3) if edges == 3 else (1, 3))
        guard = Accountant(plan.budget)
        got = run(ScriptedOracle(codes, domain, guard, plan.charges), plan)
        assert len(got.selected) == edges and guard.rho >= plan.budget.rho_cap * (1 - Fraction(1, 10**8))


def test_without_any_pair_all_of_the_budget_measures_the_columns() -> None:
    for domain, limit in ((codes_domain(a=7), 4.0), (codes_domain(a=40, b=40), 0.001)):
        plan = plan_for(MstConfig(max_model_mb=limit), domain=domain)
        assert plan.rounds == (0, 0) and not plan.candidates
        guard = Accountant(plan.budget)
        got = run(ideal(np.zeros((100, len(domain)), np.int64), domain, guard), plan)
        assert got.selected == () and [e.what for e in guard.events] == ["measure"]
        assert plan.budget.rho_cap * (1 - Fraction(1, 10**8)) <= guard.rho <= plan.budget.rho_cap


def test_a_refused_release_ends_the_run_before_anything_else_is_asked() -> None:
    guard = RefuseThird()
    with pytest.raises(BudgetRefused, match="cap is reached"):
        run(ideal(CODES, DOMAIN, guard), plan_for())
    assert guard.asked == ["measure", "select", "select"]


def test_an_empty_table_gives_a_model_and_few_rows() -> None:
    plan = plan_for()
    assert all(0 <= run(ideal(CODES[:0], DOMAIN, Accountant(plan.budget)), plan).rows < 400 for _ in range(3))


def test_synthetic_rows_override_the_noisy_total() -> None:
    plan = plan_for(MstConfig(synthetic_rows=77))
    assert run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan).rows == 77


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"max_model_mb": 0}, "max_model_mb"),
        ({"max_model_mb": True}, "max_model_mb"),
        ({"synthetic_rows": 1.5}, "synthetic_rows"),
    ],
)
def test_a_wrong_table_is_refused_by_key(spec: dict[str, object], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        MstConfig(**spec)  # type: ignore[arg-type]
    assert caught.value.sentence.startswith(f"The option {named} ")


def test_extremes_of_epsilon() -> None:
    assert plan_for(epsilon=1000.0, domain=codes_domain(a=4, b=4)).epsilon == MAX_EPSILON
    with pytest.raises(StudyInvalid, match="epsilon"):
        plan_for(epsilon=1e-7)
