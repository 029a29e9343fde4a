"""PrivMRF: shares of the budget, which sets are candidates, the graph and its marginals, a run within budget
and model."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency, Clique
from mpc_protocols.public.steps import MAX_BYTES, PrepareStep
from synth.algorithms.privmrf.algorithm import ALGORITHM
from synth.algorithms.privmrf.config import PrivMrfConfig
from synth.algorithms.privmrf.graph import dependent_pairs, first_marginals, inside, nodes_of
from synth.algorithms.privmrf.loop import run
from synth.algorithms.privmrf.plan import MAX_SETS, questions
from synth.budget.accounting import Accountant
from synth.judgement.metrics import workload_error
from synth.mrf import model_size_mb
from tests.synth.chained import CODES, DOMAIN, LINKS, ROWS, planned
from tests.synth.oracles import RefuseThird, ScriptedOracle, codes_domain, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

plan_for = partial(planned, ALGORITHM)


@pytest.mark.parametrize(("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 1), ("replace", 3)])
def test_a_run_spends_the_cap_to_within_a_hundredth(adjacency: Adjacency, unit_rows: int) -> None:
    plan = plan_for(adjacency=adjacency, unit_rows=unit_rows)
    guard = Accountant(plan.budget)
    got = run(ideal(CODES, DOMAIN, guard, adjacency, unit_rows), plan)
    whats = [event.what for event in guard.events]
    assert whats[:3] == ["measure", "distances", "measure"] and set(whats[3:]) == {"select", "measure"}
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap
    columns, pairs = guard.events[0].rho, guard.events[1].rho
    assert float(columns / plan.budget.rho_cap) == pytest.approx(0.10, rel=1e-6)
    assert float(pairs / plan.budget.rho_cap) == pytest.approx(0.08, rel=1e-6)
    assert len(got.selected) <= plan.rounds[1] == 6


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.3, 1.0, 10.0, 1000.0]),
    st.sampled_from([4, 0.0008, 0.0004]),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 5),
)
def test_any_answers_stay_within_the_cap_and_the_model(
    seed: int, epsilon: float, limit: float, adjacency: Adjacency, rows: int
) -> None:
    plan = plan_for(PrivMrfConfig(max_model_mb=limit), epsilon, adjacency, rows)
    guard = Accountant(plan.budget)  # it refuses what exceeds either cap, and the run would fail
    got = run(ScriptedOracle(CODES, DOMAIN, guard, plan.charges, np.random.default_rng(seed)), plan)
    assert model_size_mb(DOMAIN.sizes, [m.clique for m in got.measurements]) <= limit
    assert len(got.selected) == len(set(got.selected)) <= plan.rounds[1]
    assert guard.rho >= plan.budget.rho_cap * Fraction(94, 100)


@pytest.mark.parametrize("columns", [2, 12])
def test_the_noise_that_beta_is_planned_for_is_no_less_than_any_question_has(columns: int) -> None:
    domain = codes_domain(**{f"x{number}": 3 for number in range(columns)})
    plan = plan_for(domain=domain)
    widest = questions(domain, plan.config).widest(plan.charges, plan.budget.rho_cap)
    assert max(plan.sigma2, plan.pairs_sigma2, plan.marginal_sigma2(columns)) <= widest


@given(st.lists(st.integers(1, 12), min_size=3, max_size=8), st.integers(2, 6), st.integers(1, 60))
def test_larger_candidates_are_those_of_the_fewest_cells(sizes: list[int], most: int, limit: int) -> None:
    domain = codes_domain(**{f"x{number}": size for number, size in enumerate(sizes)})
    every = [
        (math.prod(domain.sizes[name] for name in clique), count, clique)
        for count in range(3, most + 1)
        for clique in itertools.combinations(domain.names, count)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synth.algorithms.privmrf.plan.MAX_SETS", limit)
        patch.setattr("synth.algorithms.privmrf.plan.MAX_SET_CELLS", 5000)
        chosen = [clique for clique in plan_for(PrivMrfConfig(max_columns=most), domain=domain).candidates]
    larger = [clique for clique in chosen if len(clique) > 2]
    cells = {clique: cells for cells, _, clique in every}
    assert len(larger) <= limit and sum(cells[clique] for clique in larger) <= 5000
    assert set(larger) <= cells.keys() and len(set(larger)) == len(larger)
    if len(larger) == len(every):
        return
    widest = max((cells[clique] for clique in larger), default=0)
    left_out = [cells[clique] for _, _, clique in every if clique not in larger]
    assert min(left_out) >= widest, "a set with fewer cells was left out for one with more"


def test_no_column_has_more_candidates_for_its_place_or_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 of 1,140 equally large sets: 45 for each column, if it is drawn."""
    monkeypatch.setattr("synth.algorithms.privmrf.plan.MAX_SETS", 300)
    domain = codes_domain(**{f"x{19 - number}": 2 for number in range(20)})
    larger = [clique for clique in plan_for(domain=domain).candidates if len(clique) > 2]
    of_column = [sum(name in clique for clique in larger) for name in domain.names]
    assert len(larger) == 300 and min(of_column) > 25 and max(of_column) < 65
    assert larger == [clique for clique in itertools.combinations(domain.names, 3) if clique in larger]


def test_more_pairs_than_can_be_asked_for_are_refused_before_anything_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(StudyInvalid, match="All 44850 pairs of columns would be asked for, of 179400 cells"):
        plan_for(domain=codes_domain(**{f"x{number}": 2 for number in range(300)}))
    with pytest.raises(StudyInvalid, match=r"All 1225 pairs .* 4904900 bytes of names together"):
        plan_for(domain=codes_domain(**{f"{number:02}{'y' * 1996}": 2 for number in range(50)}))
    monkeypatch.setattr("synth.algorithms.privmrf.plan.MAX_PAIR_CELLS", 10)
    with pytest.raises(StudyInvalid, match="lower max_model_mb"):
        plan_for()


def test_what_is_shared_at_once_fits_a_step() -> None:
    """Also all candidates together, of which there are fewer inside a graph."""
    domain = codes_domain(**{f"{number:02}\u00e4{'y' * 70}": 2 for number in range(30)})
    plan = plan_for(PrivMrfConfig(max_columns=6), domain=domain)
    larger = tuple(clique for clique in plan.candidates if len(clique) > 2)
    assert 1000 < len(larger) < MAX_SETS
    assert all(len(PrepareStep(cliques).to_bytes()) < MAX_BYTES for cliques in (plan.pairs, larger))


def test_a_batch_never_asks_for_more_comparisons_than_parties_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mpc_protocols.mechanisms.selection.MAX_COMPARISONS", 12)
    plan, asked = plan_for(), list[tuple[int, int]]()
    oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    select = oracle.select

    def watched(handles: Any, *others: Any) -> list[int]:
        asked.append((len(handles), others[-1]))
        return select(handles, *others)

    monkeypatch.setattr(oracle, "select", watched)
    got = run(oracle, plan)
    assert asked and all(picks * kept * (kept - 1) // 2 <= 12 for kept, picks in asked)
    assert len(set(got.selections)) == sum(picks for _, picks in asked) > len(asked)


def test_sets_outside_a_tree_of_the_models_size_are_asked_too() -> None:
    """The graph may be larger than the model, which picks keep within its limit: with 0.0008 MiB no tree
    joins all of a chain."""
    config = PrivMrfConfig(max_model_mb=0.0008, max_columns=2)
    plan = plan_for(config, epsilon=50.0)
    asked: list[Clique] = []
    oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan, lambda _, what, **about: asked.extend(about.get("joined", [])))
    assert model_size_mb(DOMAIN.sizes, [tuple(pair) for pair in asked]) > config.max_model_mb
    assert model_size_mb(DOMAIN.sizes, [m.clique for m in got.measurements]) <= config.max_model_mb


@given(st.lists(st.integers(2, 9), min_size=3, max_size=7), st.integers(0, 2**32), st.floats(0.0005, 0.01))
def test_the_graph_takes_the_most_dependent_pairs_that_fit(sizes: list[int], seed: int, limit: float) -> None:
    domain = codes_domain(**{f"x{number}": size for number, size in enumerate(sizes)}).sizes
    rng = np.random.default_rng(seed)
    dependence: dict[Clique, float] = {
        pair: float(rng.normal()) for pair in itertools.combinations(domain, 2)
    }
    taken = dependent_pairs(domain, dependence, limit)
    for pair in sorted(dependence, key=lambda pair: -dependence[pair]):
        before = [each for each in taken if dependence[each] > dependence[pair]]
        fits = model_size_mb(domain, [*before, pair]) <= limit
        assert (pair in taken) == (fits and dependence[pair] > 0)
    if taken:
        nodes = nodes_of(domain, taken)
        assert inside(nodes, taken) == taken
        assert all(len(node) > 1 for node in nodes)


def test_the_first_marginal_of_a_column_says_most_about_it_without_saying_it_twice() -> None:
    names = ("a", "b", "c", "d")
    nodes = [frozenset("abc"), frozenset("cd")]
    useful = [*itertools.combinations("abc", 2), ("a", "b", "c"), ("c", "d")]
    # b and c say the same about a: one of them is enough
    same: dict[Clique, float] = {("a", "b"): 0.9, ("a", "c"): 0.8, ("b", "c"): 1.9, ("c", "d"): 0.1}
    assert first_marginals(names, nodes, same, useful) == [("a", "b"), ("b", "c"), ("c", "d")]
    # they say different things: both
    apart: dict[Clique, float] = {("a", "b"): 0.9, ("a", "c"): 0.8, ("b", "c"): 0.0, ("c", "d"): 0.1}
    assert first_marginals(names, nodes, apart, useful)[0] == ("a", "b", "c")
    # nothing depends on anything, or nothing is useful
    assert first_marginals(names, nodes, dict.fromkeys(same, -1.0), useful) == []
    assert first_marginals(names, nodes, same, []) == []


def test_without_noise_it_looks_where_the_dependence_is() -> None:
    plan = plan_for(PrivMrfConfig(max_columns=2), epsilon=50.0)
    oracle = ScriptedOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    first = [m.clique for m in got.measurements if m.round == 0 and len(m.clique) == 2]
    assert set(first) > LINKS and all("e" in clique for clique in set(first) - LINKS)
    for cliques, weights, penalties, epsilon in oracle.selections:
        assert set(weights) == {1} and epsilon == plan.epsilon and all(p > 0 for p in penalties)
        assert not set(cliques) & set(first)
    assert len(oracle.handles) == len(set(oracle.handles))  # everything is shared once


def test_a_chain_is_learned() -> None:
    plan = plan_for(epsilon=10.0)
    got = run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan)
    assert got.rows == round(got.noisy_total) == pytest.approx(ROWS, abs=50)
    synthetic = got.model.sample(got.rows, np.random.default_rng(0))
    triples = list(itertools.combinations(DOMAIN.names, 3))
    independent = np.stack([np.random.default_rng(j).permutation(CODES[:, j]) for j in range(5)], axis=1)
    error = workload_error(CODES, synthetic, DOMAIN, triples)
    assert error < 0.06 < 0.5 < workload_error(CODES, independent, DOMAIN, triples)


def test_without_any_pair_all_of_the_budget_measures_the_columns() -> None:
    for domain, limit in ((codes_domain(a=7), 4.0), (codes_domain(a=40, b=40), 0.001)):
        plan = plan_for(PrivMrfConfig(max_model_mb=limit), domain=domain)
        assert plan.rounds == (0, 0) and not plan.pairs and not plan.candidates
        guard = Accountant(plan.budget)
        got = run(ideal(np.zeros((100, len(domain)), np.int64), domain, guard), plan)
        assert got.selected == () and [e.what for e in guard.events] == ["measure"]
        assert plan.budget.rho_cap * (1 - Fraction(1, 10**8)) <= guard.rho <= plan.budget.rho_cap


def test_a_small_table_gets_its_columns_alone() -> None:
    plan = plan_for()
    got = run(ideal(CODES[:100], DOMAIN, guard := Accountant(plan.budget)), plan)
    assert got.fallback and [e.what for e in guard.events] == ["measure", "measure"] and got.selected == ()


def test_a_refused_release_ends_the_run_before_anything_else_is_asked() -> None:
    guard = RefuseThird()
    with pytest.raises(BudgetRefused, match="cap is reached"):
        run(ideal(CODES, DOMAIN, guard), plan_for())
    assert guard.asked == ["measure", "distances", "measure"]
