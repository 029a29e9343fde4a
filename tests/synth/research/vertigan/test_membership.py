"""Who sees a critic's noisy steps, and knows all else, tells a member from a stranger no better than the
charge allows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from runner.review.audit.groups.inference import BROKEN, area, ceiling, margin
from synth.research.vertigan import net
from synth.research.vertigan.coins import Coins
from synth.research.vertigan.owner import Owner
from synth.research.vertigan.plan import VertiGanPlan
from tests.synth.research.vertigan import worlds

TRIALS = 1000
RATE = 0.999
"""Of a batch: the bound is that of a row that is always in it."""


class Silent(Coins):
    """Coins without noise: of no private run."""

    def noise(self, sigma2: Any, count: int) -> Any:
        """See `Coins`."""
        return np.zeros(count, np.int64)


def scores(plan: VertiGanPlan, coins: Coins, rows: int, trials: int) -> Any:
    """Of one step each on a table of a row or none: along the mean of what that row adds, which the attacker
    can compute."""
    codes = {name: column[:1] for name, column in worlds.table(1).items()}
    given = net.fresh((*net.TRUNK, *net.branch(plan.cells_of("south"))), np.random.default_rng(5))
    row = Owner(plan, "south", codes, 1, Silent(worlds.seeded(3)))
    towards = np.mean([row.batch_sum(given) for _ in range(100)], axis=0)
    of = Owner(plan, "south", {name: column[:rows] for name, column in codes.items()}, rows, coins)
    found = []
    for _ in range(trials):
        of._critic.weight, of._critic.output = row._critic.weight.copy(), row._critic.output.copy()
        found.append(float(of.step(given) @ towards))
    return np.array(found)


def test_a_row_shows_in_a_noisy_step_no_more_than_was_charged() -> None:
    """False alarms below 1e-7 for the law (Hoeffding), and none with these coins. Without noise the attack
    finds every member."""
    plan = worlds.plan(rate=RATE, rounds=1, critic_steps=1, epsilon=12.0).knowing(worlds.OWNERS)
    sigma = math.sqrt(plan.noise2)
    limit = ceiling(1 / sigma)
    assert limit == pytest.approx(NormalDist().cdf(1 / (sigma * math.sqrt(2)))) and 0.7 < limit < 0.95
    control = area(
        scores(plan, Silent(worlds.seeded(4)), 1, 50), scores(plan, Silent(worlds.seeded(5)), 0, 50)
    )
    assert control >= BROKEN
    found = area(
        scores(plan, Coins(worlds.seeded(6)), 1, TRIALS), scores(plan, Coins(worlds.seeded(7)), 0, TRIALS)
    )
    assert 0.6 < found <= limit + margin(TRIALS), (found, limit)
