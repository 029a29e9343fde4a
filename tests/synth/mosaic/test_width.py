"""A hundred columns: planned, asked, fitted and drawn; and what a dry run spares."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MarginalOracle, unobserved
from mpc_protocols.in_memory.presumed import DryRun
from synth.algorithms.mosaic import foreseen, loop, model_size
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.candidates import Candidate
from synth.algorithms.mosaic.config import MosaicConfig
from synth.algorithms.mosaic.loop import run
from synth.algorithms.mosaic.plan import BATCH
from synth.budget.accounting import Accountant
from synth.judgement.metrics import workload_error
from synth.run import PRESUMED_ITERATIONS
from synth.workload import Workload
from tests.synth.oracles import codes_domain, ideal

pytestmark = pytest.mark.usefixtures("whatever_the_noise")

COLUMNS, ROWS = 100, 4000
DOMAIN = codes_domain(**{f"c{number}": 2 + number % 3 for number in range(COLUMNS)})
WORKLOAD = Workload.from_spec({"degree": 2, "count": 120, "seed": 1}, DOMAIN)


def chained(rng: np.random.Generator) -> np.ndarray:
    """Each column repeats the one before it, but for a fifth of the rows."""
    codes = np.stack([rng.integers(0, size, ROWS) for size in DOMAIN.sizes.values()], axis=1)
    for number in range(1, COLUMNS):
        same = rng.random(ROWS) < 0.8
        codes[same, number] = codes[same, number - 1] % (2 + number % 3)
    return codes.astype(np.int64)


def test_a_hundred_columns_from_plan_to_rows() -> None:
    codes = chained(np.random.default_rng(5))
    plan = ALGORITHM.plan(
        DOMAIN, WORKLOAD, MosaicConfig(rounds=8), epsilon=50.0, delta=1e-6, adjacency="add-remove"
    )
    guard = Accountant(plan.budget)
    synthesis = run(ideal(codes, DOMAIN, guard), plan)
    assert len(synthesis.selected) == 8 and guard.rho <= plan.budget.rho_cap
    table = synthesis.model.sample(ROWS, np.random.default_rng(1), targets=WORKLOAD.cliques)
    assert table.shape == (ROWS, COLUMNS) and (table < np.array(list(DOMAIN.sizes.values()))).all()
    strongest = [tuple(clique) for clique in synthesis.selected if len(clique) == 2]
    assert strongest and workload_error(codes, table, DOMAIN, strongest) < 0.05


def test_more_sets_of_columns_than_a_run_can_compare_are_refused_by_the_plan() -> None:
    domain = codes_domain(**{f"c{number}": 2 for number in range(500)})
    workload = Workload.from_spec({"degree": 2}, domain)
    with pytest.raises(
        StudyInvalid, match=r"asks about 125,250 sets of columns.*at most 65,036; add a count"
    ):
        ALGORITHM.plan(domain, workload, MosaicConfig(), epsilon=1.0, delta=1e-6, adjacency="add-remove")


@pytest.mark.parametrize("epsilon", [50.0, 0.05])
def test_the_finest_resolutions_are_left_out_of_more_marginals_than_a_run_can_use(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table that is small, and of one that is not."""
    domain = codes_domain(a=12, b=12, c=12, d=12)
    workload = Workload.from_spec({"degree": 2}, domain)
    codes = np.random.default_rng(1).integers(0, 12, (400, 4))
    offered: list[int] = []
    for most in (65_536, 4 + 10):
        monkeypatch.setattr(loop, "MAX_MARGINALS", most)
        plan = ALGORITHM.plan(
            domain, workload, MosaicConfig(), epsilon=epsilon, delta=1e-6, adjacency="add-remove"
        )
        made = loop.MosaicRun(ideal(codes, domain, Accountant(plan.budget)), plan, unobserved)
        made.measure_all_columns()
        made.choose_resolutions()
        assert {c.columns for c in made.candidates if len(c.columns) == 2} == set(workload.cliques)
        offered.append(len(made.candidates))
    assert offered[0] > 10 >= offered[1]


@pytest.mark.parametrize("presumed", [False, True])
def test_only_a_dry_run_fits_roughly(presumed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DryRun.presumed and not MarginalOracle.presumed
    plan = ALGORITHM.plan(
        DOMAIN, WORKLOAD, MosaicConfig(rounds=2), epsilon=50.0, delta=1e-6, adjacency="add-remove"
    )
    oracle = ideal(chained(np.random.default_rng(5)), DOMAIN, Accountant(plan.budget))
    monkeypatch.setattr(oracle, "presumed", presumed, raising=False)
    fits: list[object] = []

    def observe(phase: str, event: str, **fields: object) -> None:
        if phase == "fit":
            fits.append(fields["iterations"])

    run(oracle, plan, observe)
    assert fits and all((of == PRESUMED_ITERATIONS) == presumed for of in fits)


@pytest.mark.parametrize("presumed", [False, True])
def test_only_a_dry_run_stops_before_its_end_and_tells_the_rest(
    presumed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SEEN", 3), ("LIKE", 2)):
        monkeypatch.setattr(loop, name, value)
    monkeypatch.setattr(foreseen, "LIKE", 2)
    plan = ALGORITHM.plan(DOMAIN, WORKLOAD, MosaicConfig(), epsilon=50.0, delta=1e-6, adjacency="add-remove")
    guard = Accountant(plan.budget)
    oracle = ideal(chained(np.random.default_rng(5)), DOMAIN, guard)
    monkeypatch.setattr(oracle, "presumed", presumed, raising=False)
    told: list[dict[str, object]] = []
    batches: list[int] = []
    spent: list[Fraction] = []

    def observe(phase: str, event: str, **fields: object) -> None:
        if event == "foreseen":
            told.append(fields)
        if event == "measured":
            spent.append(Fraction(str(fields["rho_spent"])))
        if event == "exhausted" or (event == "measured" and fields["round"]):
            batches.append(int(str(fields.get("round", 0))))

    run(oracle, plan, observe)
    if presumed:
        costs = [after - before for before, after in pairwise(dict.fromkeys(spent))]
        left = foreseen.batches_left(costs, plan.budget.rho_cap - spent[-1])
        assert len(costs) == 3 and told == [{"batches": left, "like": 2}]
        assert max(batches) <= 3 * BATCH and guard.rho < 0.9 * plan.budget.rho_cap
    else:
        assert not told and max(batches) > 3 * BATCH and guard.rho > 0.95 * plan.budget.rho_cap


def test_what_is_coarser_than_what_fits_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Sizes:
        mb = 1.0

        def __init__(self, run: object) -> None: ...

        def beside(self, candidate: Candidate, limit_mb: float) -> float:
            asked.append(candidate.cells)
            return candidate.cells / 10

    monkeypatch.setattr(model_size, "ModelSize", Sizes)
    offered = [Candidate(("a", "b"), (f"a/{n}", "b"), n, 1) for n in (8, 64, 32, 16)]
    made: Any = SimpleNamespace(oracle=SimpleNamespace(presumed=False))
    fits = model_size.Room(made).fitting(offered, 5.0)
    assert {candidate.cells for candidate in fits} == {8, 16, 32} and asked == [64, 32]


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 1024), (1.1, 8192)])
def test_of_the_finest_resolution_candidates_have_so_many_cells(epsilon: float, most: int) -> None:
    domain = codes_domain(a=40, b=40, c=40)
    plan = ALGORITHM.plan(
        domain,
        Workload.from_spec({"degree": 3}, domain),
        MosaicConfig(),
        epsilon=epsilon,
        delta=1e-6,
        adjacency="add-remove",
    )
    assert plan.candidates["a", "b", "c"] == most


@given(count=st.integers(1, 500), growth=st.floats(1.0, 1.3), first=st.floats(1e-4, 1e4))
def test_a_budget_of_so_many_batches_pays_for_so_many(count: int, growth: float, first: float) -> None:
    """Each costs the same factor more than the one before; half of the last is room for rounding."""
    costs = [Fraction(first * growth**number) for number in range(foreseen.LIKE + 1)]
    later = [float(costs[-1]) * growth ** (number + 1) for number in range(count)]
    assume(later[-1] < 1e200 and sum(later) * 1e-9 < later[-1])
    left = Fraction(sum(later) - later[-1] / 2)
    assert foreseen.batches_left(costs, left) == count
