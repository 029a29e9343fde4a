"""What a statistical check says that it would have seen, it sees: the same statistics on draws of faulty
laws, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import BACKENDS
from runner.review.audit import statistics
from runner.review.audit.check import Profile
from runner.review.audit.groups import inference, mechanisms

RNG = np.random.default_rng(20)
TRIALS = 10
"""Nine of ten are promised; of a power of .99 two of ten fail with a chance of .004."""


def seen(found: Callable[[], bool]) -> int:
    return sum(found() for _ in range(TRIALS))


def picks(temperature: float, count: int) -> NDArray[np.int64]:
    weights = np.exp(temperature * np.array(mechanisms.SPREAD))
    return RNG.multinomial(count, weights / weights.sum())


@pytest.mark.parametrize(
    ("picked", "alpha", "profile", "temperatures"),
    [
        (mechanisms.PICKED, mechanisms.LAW_ALPHA, Profile.QUICK, (0.5, 2.0)),
        (mechanisms.PICKED, mechanisms.LAW_ALPHA, Profile.DEFAULT, (1 / 1.5, 1.5)),
        (
            mechanisms.PICKED_BY_PARTIES,
            mechanisms.PARTIES_LAW_ALPHA / len(list(BACKENDS)),
            Profile.DEFAULT,
            (2.0,),
        ),
    ],
)
def test_a_wrong_temperature_is_seen(
    picked: dict[Profile, int], alpha: float, profile: Profile, temperatures: tuple[float, ...]
) -> None:
    weights = np.exp(mechanisms.SPREAD)
    law = (weights / weights.sum()).tolist()

    def found(temperature: float) -> bool:
        return statistics.exact_multinomial(picks(temperature, picked[profile]).tolist(), law) < alpha

    for temperature in temperatures:
        assert seen(partial(found, temperature)) >= TRIALS - 1


def test_noise_left_out_is_seen_in_few_choices() -> None:
    """The best candidate each time."""
    weights = np.exp(mechanisms.SPREAD)
    count = mechanisms.PICKED_BY_PARTIES[Profile.QUICK]
    alpha = mechanisms.PARTIES_LAW_ALPHA / len(list(BACKENDS))
    assert statistics.exact_multinomial([0, 0, count], (weights / weights.sum()).tolist()) < alpha


@pytest.mark.parametrize(
    ("profile", "times"), [(Profile.QUICK, 1.5), (Profile.DEFAULT, 1.2), (Profile.DEEP, 1.1)]
)
def test_a_count_that_tells_more_than_is_charged_is_seen(profile: Profile, times: float) -> None:
    """mu that many times the one charged: so much less noise."""
    charged = 1 / math.sqrt(mechanisms.LOUD)
    reach = np.arange(-40, 41)
    law = np.exp(-((reach * times * charged) ** 2) / 2)
    size = (2, mechanisms.SIDES[profile] // 2)

    def found() -> bool:
        without, with_row = RNG.choice(reach, size, p=law / law.sum())
        return mechanisms.demonstrated_mu(without, with_row + 1)[1] > charged

    assert seen(found) >= TRIALS - 1


@pytest.mark.parametrize(("profile", "mus"), [(Profile.QUICK, (0.0, 3.0)), (Profile.DEFAULT, (0.9, 2.1))])
def test_noise_that_is_not_what_is_charged_is_seen_by_the_likelihood(
    profile: Profile, mus: tuple[float, float]
) -> None:
    trials = inference.TRIALS[profile]
    limit, margin = inference.ceiling(inference.MU), inference.margin(trials)

    def found(mu: float) -> bool:
        inside, outside = RNG.normal(mu, 1, trials), RNG.normal(0, 1, trials)
        return abs(inference.area(inside, outside) - limit) > margin

    for mu in mus:
        assert seen(partial(found, mu)) >= TRIALS - 1
