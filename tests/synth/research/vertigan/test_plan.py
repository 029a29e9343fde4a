"""What a training costs: recomputed by dp-accounting, refused where no charge is known."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant

from mpc_protocols.errors import StudyInvalid
from synth.budget.accounting import Accountant
from synth.budget.sampled_gaussian import ORDERS, TRAIN
from synth.domain import Domain
from synth.research.vertigan.algorithm import ALGORITHM
from synth.research.vertigan.config import VertiGanConfig
from synth.research.vertigan.critic import parameters
from synth.workload import Workload
from tests.synth.research.vertigan import worlds

EIGHT = Domain.from_spec({"columns": {f"c{number}": 4 for number in range(8)}})


def of_owners(count: int, epsilon: float, delta: float = 1e-6, **config: Any) -> Any:
    drafted = ALGORITHM.plan(
        EIGHT,
        Workload.from_spec({"degree": 1}, EIGHT),
        VertiGanConfig(**config),
        epsilon=epsilon,
        delta=delta,
        adjacency="add-remove",
    )
    return drafted.knowing({name: f"owner {number % count}" for number, name in enumerate(EIGHT.names)})


@pytest.mark.parametrize("owners", [1, 2, 4, 8])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_the_joint_epsilon_is_never_above_the_printed_one(owners: int, epsilon: float) -> None:
    """Everything that all owners release about one person, by dp-accounting; and no more than 4 % of it is
    wasted."""
    plan = of_owners(owners, epsilon)
    *counts, train = plan.events()
    assert len(counts) == owners and train.what == TRAIN
    accountant = RdpAccountant(list(ORDERS[:100]))
    for event in counts:
        accountant.compose(GaussianDpEvent(math.sqrt(Fraction(event.detail["sigma2"]))))
    step = PoissonSampledDpEvent(
        float(Fraction(train.detail["rate"])), GaussianDpEvent(math.sqrt(Fraction(train.detail["noise2"])))
    )
    accountant.compose(SelfComposedDpEvent(step, train.detail["steps"]))
    assert train.detail["steps"] == owners * 600 * 5
    assert 0.96 * epsilon < accountant.get_epsilon(1e-6) <= epsilon


def test_events_fit_the_budget_and_nothing_more_does() -> None:
    for plan in (
        worlds.plan().knowing(worlds.OWNERS),
        worlds.plan(sampling="buckets", adjacency="replace", epsilon=30.0).knowing(worlds.OWNERS),
    ):
        accountant = Accountant(plan.budget)
        for event in plan.events():
            accountant.authorise(event, b"")
        assert accountant.rho <= plan.budget.rho_cap and accountant.beta == plan.budget.beta_cap
        assert plan == replace(plan).knowing(worlds.OWNERS)


def test_buckets_cost_their_exposures_and_replace_four_times_that() -> None:
    plan = worlds.plan(sampling="buckets", epsilon=30.0, rounds=10, critic_steps=3, rate=0.25)
    plan = plan.knowing(worlds.OWNERS)
    event = plan.events()[-1]
    assert plan.buckets == 4 and event.detail["exposures"] == 8  # of 30 steps
    assert event.rho == 8 * 2 / (2 * plan.noise2)
    other = replace(plan, charges=replace(plan.charges, adjacency="replace")).events()[-1]
    assert other.rho == 4 * event.rho
    assert sum(each.rho for each in plan.events()) <= plan.budget.rho_cap


def test_noise_grows_with_the_owners_and_with_what_may_round_another_way() -> None:
    two, four = of_owners(2, 4.0), of_owners(4, 4.0)
    assert four.noise2 > two.noise2
    numbers = parameters(16)
    assert two.integer_noise("owner 0") >= two.noise2 * (2**14 + math.isqrt(numbers)) ** 2
    assert float(two.integer_noise("owner 0")) == pytest.approx(
        float(two.noise2) * (2**14 + math.sqrt(numbers)) ** 2, rel=1e-8
    )


def test_what_has_no_charge_is_refused() -> None:
    with pytest.raises(StudyInvalid, match=r"add-remove.*buckets"):
        worlds.plan(adjacency="replace")
    with pytest.raises(StudyInvalid, match="single ones"):
        ALGORITHM.plan(
            worlds.DOMAIN,
            Workload.from_spec({"degree": 1}, worlds.DOMAIN),
            VertiGanConfig(),
            epsilon=1.0,
            delta=1e-6,
            adjacency="add-remove",
            unit_rows=2,
        )
    with pytest.raises(StudyInvalid, match="too little"):
        worlds.plan(epsilon=0.05, rounds=4_000, rate=0.5)
    with pytest.raises(StudyInvalid, match="less than"):
        worlds.plan(rate=1e-12)
