"""Mosaic's run on scripted and ideal oracles: budget, what is asked and with what noise, what it learns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.ideal.dry_run import IdealDryRun
from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency, Handle, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.config import MosaicConfig
from synth.algorithms.mosaic.loop import run
from synth.algorithms.mosaic.plan import FIXED_BATCH
from synth.budget.accounting import Accountant
from synth.domain import Domain
from synth.judgement.metrics import workload_error
from synth.mrf import Model
from synth.workload import Workload
from tests.synth.chained import planned
from tests.synth.mosaic.scripted import LayeredOracle
from tests.synth.oracles import RefuseThird, codes_domain, counts_of, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

ROWS = 20_000


def wide(rows: int, rng: np.random.Generator) -> tuple[Domain, np.ndarray]:
    """age (60 values) decides band and, with sex, pay (40 values); town (12) is independent."""
    domain = codes_domain(age=60, sex=2, band=5, pay=40, town=12)
    age = np.minimum(rng.gamma(4, 6, rows).astype(int), 59)
    sex = rng.integers(0, 2, rows)
    band = np.minimum(age // 13, 4)
    pay = np.clip(age // 3 + 8 * sex + rng.integers(0, 8, rows), 0, 39)
    town = np.minimum(rng.geometric(0.3, rows) - 1, 11)
    return domain, np.stack([age, sex, band, pay, town], axis=1).astype(np.int64)


DOMAIN, CODES = wide(ROWS, np.random.default_rng(4))
WORKLOAD = Workload.from_spec({"degree": 3}, DOMAIN)


plan_for = partial(planned, ALGORITHM, domain=DOMAIN, workload=WORKLOAD)


@pytest.mark.parametrize(("adjacency", "unit_rows"), [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize("rounds", [None, 1, 10])
def test_a_run_spends_the_cap_and_never_more(
    rounds: int | None, adjacency: Adjacency, unit_rows: int
) -> None:
    plan = plan_for(MosaicConfig(rounds=rounds or "adaptive"), adjacency=adjacency, unit_rows=unit_rows)
    guard = Accountant(plan.budget)
    got = run(ideal(CODES, DOMAIN, guard, adjacency, unit_rows), plan)
    assert plan.budget.rho_cap * Fraction(94, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap
    assert sum(e.what == "select" for e in guard.events) <= plan.rounds[1]
    assert 0 < len(got.selected) <= plan.rounds[1]


@settings(max_examples=14, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.05, 1.0, 10.0]),
    st.sampled_from([None, 7]),
    st.sampled_from(["usual", 1, 16]),
)
def test_the_cap_holds_whatever_the_answers(
    seed: int, epsilon: float, rounds: int | None, batch: int | str
) -> None:
    plan = plan_for(MosaicConfig(rounds=rounds or "adaptive", batch=batch), epsilon)
    guard = Accountant(plan.budget)  # it refuses what exceeds either cap, and the run would fail
    run(LayeredOracle(CODES, DOMAIN, guard, plan.charges, np.random.default_rng(seed)), plan)
    assert guard.rho <= plan.budget.rho_cap


def test_the_columns_share_their_budget_by_weight_and_size() -> None:
    plan = plan_for()
    costs = {clique: plan.charges.measuring(of) for clique, of in plan.column_sigma2.items()}
    spent = sum(costs.values())
    third = plan.budget.rho_cap / 3
    assert third * (1 - Fraction(1, 10**9)) <= spent <= third
    assert costs[("age",)] / costs[("sex",)] == pytest.approx(30 ** (2 / 3), rel=1e-4)
    assert plan.sigma2 == plan.column_sigma2[("sex",)]


@pytest.mark.parametrize("batch", ["usual", 3])
def test_no_batch_asks_twice_for_the_same_columns_and_each_pick_is_recomputable(batch: int | str) -> None:
    plan = plan_for(MosaicConfig(rounds=8, batch=batch))
    picks = FIXED_BATCH if batch == "usual" else 3
    guard = Accountant(plan.budget)
    oracle = LayeredOracle(CODES, DOMAIN, guard, plan.charges)
    told: list[dict[str, object]] = []
    got = run(oracle, plan, lambda phase, event, **fields: told.append({"event": event, **fields}))
    assert [len(batch[0]) > 0 for batch in oracle.selections] == [True] * math.ceil(8 / picks)
    picked = [frozenset(clique) for clique in got.selected]
    for start in range(0, len(picked), picks):
        of_batch = picked[start : start + picks]
        assert not any(a <= b for a in of_batch for b in of_batch if a is not b)
    json.dumps(told)  # everything observed is public and plain
    assert {"measured", "selected", "fitted"} <= {str(one["event"]) for one in told}
    again = LayeredOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    assert run(again, plan).selected == got.selected
    assert again.selections == oracle.selections


@pytest.mark.parametrize(("rounds", "told"), [(8, 8), ("adaptive", None)])
def test_how_many_rounds_there_will_be_is_told_where_it_is_known(
    rounds: int | Literal["adaptive"], told: int | None
) -> None:
    plan = plan_for(MosaicConfig(rounds=rounds))
    found = []

    def observe(phase: str, event: str, **fields: object) -> None:
        if event == "selected":
            found.append(fields["rounds"])

    run(LayeredOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges), plan, observe)
    assert set(found) == {told}


def test_the_penalty_is_one_and_a_half_times_the_noise_and_cheap_questions_come_with_more() -> None:
    plan = plan_for()
    oracle = LayeredOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    cliques, weights, penalties, epsilon = oracle.selections[0]
    assert epsilon == plan.epsilon
    for clique, weight, penalty in zip(cliques, weights, penalties, strict=True):
        assert weight == 6 * len(clique)  # each of five columns is in six of the ten triples
        assert penalty <= 2 * Fraction(ROWS)
        assert (
            len(clique) == 1
            or math.prod(
                next((lv.size for lv in oracle.levels.values() if lv.name == n), DOMAIN.sizes.get(n, 0))  # type: ignore[arg-type, attr-defined]
                for n in clique
            )
            <= 1024
        )
    first = [m for m in got.measurements if m.round == 1]
    assert first and all(m.sigma2 > 0 for m in first)


def test_it_learns_wide_columns_that_one_fine_marginal_could_not_pay() -> None:
    plan = plan_for()
    got = run(ideal(CODES, DOMAIN, Accountant(plan.budget)), plan)
    table = got.model.sample(got.rows, np.random.default_rng(0), targets=WORKLOAD.cliques)
    shuffled = np.stack([np.random.default_rng(j).permutation(CODES[:, j]) for j in range(5)], axis=1)
    error = workload_error(CODES, table, DOMAIN, WORKLOAD.cliques)
    assert error < 0.45 * workload_error(CODES, shuffled, DOMAIN, WORKLOAD.cliques)
    assert any(m.levels for m in got.measurements)
    assert got.noisy_total == pytest.approx(ROWS, abs=200)
    again = Model.from_bytes(got.model.to_bytes())
    for pair in (("age", "pay"), ("pay", "town")):
        np.testing.assert_allclose(again.marginal(pair), got.model.marginal(pair), rtol=1e-7, atol=1e-6)


def test_a_coarse_measurement_is_the_sum_of_the_fine_counts_when_nothing_is_added() -> None:
    plan = plan_for()
    oracle = LayeredOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    for m in got.measurements:
        names = {level.name: level for level in m.levels}
        columns = [names[n].column if n in names else n for n in m.clique]
        codes = [CODES[:, DOMAIN.names.index(column)] for column in columns]
        codes = [
            np.array(names[n].bins)[c] if n in names else c for n, c in zip(m.clique, codes, strict=True)
        ]
        sizes = [names[n].size if n in names else DOMAIN.sizes[n] for n in m.clique]
        expected = np.bincount(np.ravel_multi_index(tuple(codes), sizes), minlength=math.prod(sizes))
        np.testing.assert_array_equal(m.values, expected)


def test_a_neighbouring_table_moves_a_coarse_marginal_by_one_row() -> None:
    plan = plan_for()
    oracle = LayeredOracle(CODES, DOMAIN, Accountant(plan.budget), plan.charges)
    got = run(oracle, plan)
    fewer = LayeredOracle(CODES[1:], DOMAIN, Accountant(plan.budget), plan.charges)
    fewer.__dict__["levels"] = oracle.levels  # type: ignore[attr-defined]
    for m in got.measurements:
        moved = oracle.truth(m.clique) - fewer.truth(m.clique)
        assert int(np.abs(moved).sum()) == 1, "a row lies in exactly one cell, at every resolution"


def test_a_refused_release_ends_the_run_before_anything_else_is_asked() -> None:
    with pytest.raises(BudgetRefused, match="cap is reached"):
        run(ideal(CODES, DOMAIN, RefuseThird()), plan_for())


@pytest.mark.parametrize(
    "wrong",
    [{"rounds": 0}, {"rounds": "x"}, {"max_model_mb": 0}, {"select_share": 1.0}, {"synthetic_rows": 0}],
)
def test_a_table_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(StudyInvalid, match=next(iter(wrong))):
        MosaicConfig(**wrong)  # type: ignore[arg-type]


def test_the_model_stays_within_its_limit_and_the_budget_is_spent_all_the_same() -> None:
    """Room for a few joint marginals only, never enough for all that a batch picks."""
    plan = plan_for(MosaicConfig(max_model_mb=0.01, rounds=24))
    guard = Accountant(plan.budget)
    sizes: list[float] = []
    left_out: list[object] = []

    def observe(_: str, event: str, **fields: object) -> None:
        if isinstance(size := fields.get("model_mb"), float):
            sizes.append(size)
        if event == "left_out":
            left_out.append(fields["clique"])

    run(ideal(CODES, DOMAIN, guard), plan, observe)
    assert max(sizes) <= 0.01 and left_out
    assert guard.rho >= plan.budget.rho_cap * Fraction(94, 100)


def test_a_dry_run_is_told_the_same_each_time() -> None:
    plan = plan_for()
    facts = StudyFacts(DOMAIN.sizes, "add-remove", 1, 1 << 20, bytes(32))

    def picked() -> tuple[object, ...]:
        return run(IdealDryRun(facts, counts_of(CODES, DOMAIN), 3), plan).selections

    assert picked() == picked()


class Told(RelayedOracle):
    """Notes what is told before each measurement, and which noise the next one then has."""

    def __init__(self, oracle: MarginalOracle) -> None:
        super().__init__(oracle)
        self.told: list[dict[Fraction, int]] = [{}]
        self.expected: list[Fraction] = []
        self.measured: list[tuple[list[Fraction], int]] = []

    def expect_counts(self, sigma2: Fraction, number: int) -> None:
        self.told[-1][sigma2] = number

    def expect(self, sigma2: Fraction, promised: bool = False) -> None:
        self.expected.append(sigma2)

    def measure(self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]) -> list[np.ndarray]:
        found = super().measure(handles, sigma2)
        of = [sigma2] if isinstance(sigma2, Fraction) else sorted(set(sigma2))
        self.measured.append((of, sum(map(len, found))))
        self.told.append({})
        return found


@pytest.mark.parametrize(("rounds", "batch"), [(7, "usual"), (12, 4), (1, 1)])
def test_a_batch_is_told_with_the_measurement_before(rounds: int, batch: int | str) -> None:
    """Its noise, and as many counts as it may take; also if the batch before or the last one leaves picks out, unless they
    are half of the last or more."""
    plan = plan_for(MosaicConfig(rounds=rounds, batch=batch, max_model_mb=0.01))
    left_out, untold = 0, 0
    for seed in range(4):
        events: list[str] = []
        scripted = LayeredOracle(
            CODES, DOMAIN, Accountant(plan.budget), plan.charges, np.random.default_rng(seed)
        )
        oracle = Told(scripted)
        run(oracle, plan, lambda phase, event, events=events, **values: events.append(event))
        left_out += events.count("left_out")
        batches = zip(oracle.told, oracle.expected, oracle.measured[1:], strict=False)
        for number, (told, expected, (measured, cells)) in enumerate(batches, 1):
            assert next(iter(told)) == expected
            [sigma2] = measured
            if number == len(oracle.expected) and sigma2 not in told:
                untold += 1
                continue
            assert cells <= told[sigma2]
        assert not oracle.told[len(oracle.expected)]
    assert (left_out > 0) == (rounds > 1) and untold < 4
