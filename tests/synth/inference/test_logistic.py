"""Intervals of logistic regressions under noise: what is left of a regressor's information falls with its coefficient."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from synth.domain import Codes, Domain
from synth.inference.intervals import bent
from synth.inference.licence import Uncertain
from synth.inference.regression import DECIDED
from tests.synth.inference.small import ask, measured, model


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_limit_is_where_the_information_up_to_it_is_so_many_errors_of_there(share: float) -> None:
    falls, distance = 0.9, 0.8
    low, high = bent(2.0, (2.0 - distance, 2.0 + distance), -falls, share, DECIDED)
    assert low == 2.0 - distance
    reached, _ = quad(lambda x: math.exp(-falls * x), 0.0, high - 2.0)
    there = share + (1 - share) * math.exp(-falls * (high - 2.0))
    expected = reached / math.sqrt(there)
    assert high == 2.0 + distance if share == 0 else expected == pytest.approx(distance)
    assert bent(-2.0, (-2.0 - distance, -2.0 + distance), falls, share, DECIDED) == pytest.approx(
        (-high, -low)
    )


def test_a_limit_beyond_all_information_is_none() -> None:
    with pytest.raises(Uncertain, match="decide the outcome by itself"):
        bent(2.0, (1.0, 3.0), -1.01, 1.0, DECIDED)


def test_what_is_answered_near_separation_is_seldom_wrong() -> None:
    """1,000 rows, noise 20 a cell, slope 1: most releases leave it open, and who is answered has a slope that came out
    small. Of 124 numbers of 250 releases 25 do not hold without regard to that, now 17."""
    domain, codes, wrong, asked, fitted = Domain(("y", "a"), (Codes(2), Codes(4))), np.arange(4), 0, 0, None
    start = math.log(0.3 / 0.7) - 1.5
    chance = 1 / (1 + np.exp(-(start + codes)))
    cells = np.stack([1 - chance, chance]).reshape(-1) / 4
    for seed in range(250):
        rng = np.random.default_rng([seed, 1000, 400])
        drawn = rng.choice(8, 1000, p=cells)
        noisy = measured(np.stack([drawn // 4, drawn % 4], 1), [("y", "a")], [Fraction(400)], rng, domain)
        fitted = fitted or model(noisy, 1000, domain)
        for truth, answer in zip(
            (start, 1.0), ask(["logistic(y == 1 ~ a)"], noisy, fitted, domain), strict=False
        ):
            if answer.low is not None and answer.high is not None:
                asked += 1
                wrong += not answer.low <= truth <= answer.high
    assert asked > 60 and wrong <= 19
