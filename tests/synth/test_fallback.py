"""Never worse than simple: small tables get independent columns, bought with the whole budget, and the result
says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from synth.algorithm import ALGORITHMS, Algorithm
from synth.budget.accounting import Accountant
from synth.budget.small.fallback import MAX_SHARE, joining_cells, least_share, median, noise_share, sentence
from synth.domain import Domain
from synth.workload import Workload
from tests.acceptance.small_tables import case
from tests.synth.oracles import chain, codes_domain, counts_of, ideal

RUNS = [
    ("aim", {"rounds": "adaptive"}),
    ("aim", {"rounds": 5}),
    ("mst", {}),
    ("mwem", {"rounds": 4}),
    ("mosaic", {}),
    ("mosaic", {"rounds": 8}),
]
RNG = np.random.default_rng(5)


def copies(rng: np.random.Generator, rows: int) -> tuple[Domain, NDArray[np.int64]]:
    """Six columns of yes and no, each the same one with three errors in a hundred rows."""
    first = rng.integers(0, 2, rows)
    codes = np.stack([np.where(rng.random(rows) < 0.03, 1 - first, first) for _ in range(6)], axis=1)
    return codes_domain(**dict.fromkeys("abcdef", 2)), codes


@pytest.mark.parametrize(("name", "table"), [(name, table) for name, table in RUNS if table != {"rounds": 8}])
def test_a_small_table_gets_independent_columns_for_the_whole_budget(
    name: str, table: dict[str, object]
) -> None:
    algorithm: Algorithm[Any, Any] = ALGORITHMS[name]
    config = algorithm.config(**table)
    domain, codes = chain(60, RNG)
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = algorithm.plan(domain, workload, config, epsilon=0.5, delta=1e-6, adjacency="add-remove")
    guard = Accountant(plan.budget)
    told: list[tuple[str, str]] = []
    got = algorithm.run(
        ideal(codes, domain, guard), plan, lambda phase, event, **fields: told.append((phase, event))
    )
    assert got.selected == () and not any(event.what == "select" for event in guard.events)
    assert all(len(m.clique) == 1 for m in got.measurements)
    assert guard.rho >= plan.budget.rho_cap * Fraction(94, 100)
    assert ("select", "fallback") in told
    assert got.fallback is not None and "independent" in got.fallback
    precision = {
        name: sum(1 / m.sigma2 for m in got.measurements if m.clique == (name,)) for name in domain.names
    }
    whole = 2 * plan.budget.rho_cap / len(domain)
    if name != "mosaic":  # whose columns get shares by size
        assert all(of >= whole * Fraction(93, 100) for of in precision.values())


@pytest.mark.parametrize(("name", "table"), RUNS)
def test_a_large_table_keeps_its_algorithm(name: str, table: dict[str, object]) -> None:
    algorithm: Algorithm[Any, Any] = ALGORITHMS[name]
    config = algorithm.config(**table)
    domain, codes = chain(20_000, RNG)
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = algorithm.plan(domain, workload, config, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    got = algorithm.run(ideal(codes, domain, Accountant(plan.budget)), plan, unobserved)
    assert got.fallback is None and got.selected
    assert got.model.total == max(1.0, got.noisy_total)


def test_fixed_rounds_of_mosaic_are_made_on_a_small_table_too() -> None:
    domain, codes = chain(300, RNG)
    mosaic = ALGORITHMS["mosaic"]
    plan = mosaic.plan(
        domain,
        Workload.from_spec({"degree": 2}, domain),
        mosaic.config(rounds=8),
        epsilon=0.5,
        delta=1e-6,
        adjacency="add-remove",
    )
    guard = Accountant(plan.budget)
    got = mosaic.run(ideal(codes, domain, guard), plan, unobserved)
    assert got.fallback is None and sum(event.what == "select" for event in guard.events) == 8


def test_the_share_is_the_noise_of_a_twentieth_of_the_budget() -> None:
    domain, _ = chain(10, RNG)
    workload = Workload.from_spec({"degree": 2}, domain)
    aim = ALGORITHMS["aim"]
    plan = aim.plan(domain, workload, aim.config(), epsilon=1.0, delta=1e-6, adjacency="add-remove")
    sigma = (1 / (2 * float(plan.budget.rho_cap) / 20)) ** 0.5
    assert noise_share(plan, 16, 1000.0) == pytest.approx((2 / np.pi) ** 0.5 * sigma * 16 / 1000, rel=1e-6)
    assert noise_share(plan, 16, 0.0) == noise_share(plan, 16, -5.0) == MAX_SHARE


def test_what_it_takes_to_join_a_column_is_the_smallest_candidate_that_has_it() -> None:
    cells = {("a",): 4, ("a", "b"): 8, ("a", "c"): 40, ("b", "c"): 20, ("a", "b", "c"): 80}
    assert joining_cells(cells) == 8  # of a, b and c: 8, 8 and 20
    assert joining_cells({("a",): 4}) == 0 and median([]) == 0


def test_the_sentence_holds_no_number_below_zero() -> None:
    assert "about 0 rows" in sentence(-12.3, 0.5, tried=False) and sentence(571.2, 0.4, tried=True).endswith(
        "."
    )


def test_the_number_of_rows_is_counted_with_the_whole_budget() -> None:
    """Adaptive AIM's first measurements get a tenth of it; the table must not keep that count: error and
    spread below a half.

    The deviation falls by three; a mean of 20 absolute errors above 0.6 of the others' has a chance below
    1e-3.
    """
    domain, codes = chain(200, RNG)
    aim = ALGORITHMS["aim"]
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = aim.plan(
        domain, workload, aim.config(rounds="adaptive"), epsilon=0.5, delta=1e-6, adjacency="add-remove"
    )
    first, last = [], []
    for _ in range(20):
        got = aim.run(ideal(codes, domain, Accountant(plan.budget)), plan, unobserved)
        assert got.fallback is not None
        first.append(abs(got.noisy_total - 200))
        last.append(abs(got.model.total - 200))
        assert got.rows == max(0, round(got.model.total))
    assert np.mean(last) < 0.6 * np.mean(first)


@pytest.mark.parametrize(("name", "rows"), [("mwem", 600), ("privmrf", 600), ("mosaic", 1000)])
def test_a_small_table_that_keeps_relations_counts_its_rows_by_all_that_was_measured(
    name: str, rows: int
) -> None:
    """The first count has the noise of a tenth of the budget at most, and each marginal would be scaled to
    it.

    The whole budget lowers the deviation by three; a mean of ten absolute errors above 0.6 of the others' has
    a chance below 0.05, and the seeds are fixed.
    """
    rng, algorithm = np.random.default_rng(9), ALGORITHMS[name]
    domain, codes = copies(rng, rows)
    plan = algorithm.plan(
        domain,
        Workload.from_spec({"degree": 2}, domain),
        algorithm.config(),
        epsilon=0.3,
        delta=1e-6,
        adjacency="add-remove",
    )
    facts = StudyFacts(domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    first, last = [], []
    for seed in range(10):
        noise = np.random.default_rng(seed).bytes
        oracle = IdealOracle(facts, counts_of(codes, domain), Accountant(plan.budget), noise)
        got = algorithm.run(oracle, plan, unobserved)
        if got.fallback is None:
            first.append(abs(got.noisy_total - rows))
            last.append(abs(got.model.total - rows))
            assert got.rows == max(0, round(got.model.total))
    assert len(first) >= 5 and np.mean(last) < 0.6 * np.mean(first)


@pytest.mark.parametrize("name", ["aim", "mwem", "mst", "mosaic", "privmrf"])
def test_next_to_nothing_of_the_budget_is_not_spent_on_the_columns(name: str) -> None:
    """Where all rounds of a small table were worth it, what was left by rounding alone asked for noise that
    there is not (10)."""
    rng, algorithm = np.random.default_rng(9), ALGORITHMS[name]
    domain, codes = copies(rng, 600)
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = algorithm.plan(
        domain, workload, algorithm.config(), epsilon=0.3, delta=1e-6, adjacency="add-remove"
    )
    least = len(domain) * least_share(len(domain)) * plan.budget.rho_cap
    facts = StudyFacts(domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    for seed in range(6):
        guard = Accountant(plan.budget)
        noise = np.random.default_rng(seed).bytes
        algorithm.run(IdealOracle(facts, counts_of(codes, domain), guard, noise), plan, unobserved)
        assert plan.budget.rho_cap - guard.rho <= least


@pytest.mark.parametrize("law", ["chain", "apart"])
def test_where_few_marginals_are_clear_the_trial_is_one_and_dependence_buys_noisier_and_dearer_ones(
    law: str,
) -> None:
    """MWEM is offered triples only; one is clear at half of the trial. Before, the run ended with it, or saw
    nothing in it."""
    table = case(law, 6000, None, False)
    assert table is not None
    mwem = ALGORITHMS["mwem"]
    plan = mwem.plan(
        table.domain,
        Workload.from_spec({"degree": 3}, table.domain),
        mwem.config(),
        epsilon=0.3,
        delta=1e-6,
        adjacency="add-remove",
    )
    facts = StudyFacts(table.domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    noise = np.random.default_rng(1).bytes
    oracle = IdealOracle(facts, counts_of(table.rows, table.domain), Accountant(plan.budget), noise)
    got = mwem.run(oracle, plan, unobserved)
    bought = {
        m.round: m for m in reversed(got.measurements) if len(m.clique) > 1
    }  # its first measurement is a purchase's
    assert got.fallback is None and len(bought) >= 3
    assert bought[1].sigma2 >= bought[max(bought)].sigma2


@pytest.mark.parametrize(("name", "epsilon"), [("mwem", 0.1), ("aim", 0.2), ("privmrf", 0.1)])
def test_what_is_left_goes_to_joint_marginals_that_told_something_as_well(name: str, epsilon: float) -> None:
    """Three pairs of columns, nothing else related: once they are bought no purchase is worth its price."""
    table, algorithm = case("apart", 6000, None, False), ALGORITHMS[name]
    assert table is not None
    plan = algorithm.plan(
        table.domain,
        Workload.from_spec({"degree": 2}, table.domain),
        algorithm.config(),
        epsilon=epsilon,
        delta=1e-6,
        adjacency="add-remove",
    )
    facts = StudyFacts(table.domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    kept = 0
    for seed in range(6):
        noise = np.random.default_rng(seed).bytes
        oracle = IdealOracle(facts, counts_of(table.rows, table.domain), Accountant(plan.budget), noise)
        got = algorithm.run(oracle, plan, unobserved)
        joint = [m for m in got.measurements if len(m.clique) > 1]
        again = [m for m in joint if any(m.clique == of.clique and m is not of for of in joint)]
        assert got.fallback is None
        assert all(1 <= m.round <= len(got.selected) and got.selected[m.round - 1] == m.clique for m in joint)
        kept += bool(again) and len(got.measurements[-1].clique) == 1  # and the columns have their share
    assert kept >= 5  # in one of twenty the last purchase takes what is left


def test_a_trial_may_be_noisy_where_it_tells_and_the_columns_do_not_miss_it() -> None:
    """Columns of 16 to 40 values: no pair is clear at a trial's price, yet dependence shows through the noise
    of hundreds of cells. Before, the columns took everything, of 300 rows as of 6,000; on 300 a trial would
    cost them more than it tells."""
    aim = ALGORITHMS["aim"]
    kept = []
    for rows in (6000, 300):
        table = case("levels", rows, None, False)
        assert table is not None
        workload = Workload.from_spec({"degree": 3}, table.domain)
        plan = aim.plan(table.domain, workload, aim.config(), epsilon=1, delta=1e-6, adjacency="add-remove")
        facts = StudyFacts(table.domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
        noise = np.random.default_rng(1).bytes
        oracle = IdealOracle(facts, counts_of(table.rows, table.domain), Accountant(plan.budget), noise)
        got = aim.run(oracle, plan, unobserved)
        kept.append((got.fallback is None, len(got.selected)))
    assert kept[0][0] and kept[0][1] >= 1 and kept[1] == (False, 0)
