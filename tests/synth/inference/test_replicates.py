"""Replicates differ as releases would: by the noise and by who took part."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from synth.inference import UnfitRun
from synth.inference.replicates import Replicates
from tests.synth.inference.small import AB, AC, FACTS, ask, measured, model, people

NUMBER = 300


@pytest.mark.parametrize("noise", [Fraction(1, 100), Fraction(2000)])
def test_their_spread_is_the_error_of_an_answer(noise: Fraction) -> None:
    """A ratio of variances of 300 normal numbers lies outside (0.72, 1.36) with a chance below 1e-3."""
    table = people(4000)
    released = measured(table, [AB, AC], [noise] * 2, np.random.default_rng(3))
    fitted = model(released, 4000)
    [answer] = ask(["share(c == 2 | a == 1)"], released, fitted)
    made, rng, shares = Replicates(fitted, released, FACTS), np.random.default_rng(4), []
    for _ in range(NUMBER):
        joint = made.model(rng).marginal(AC).reshape(4, 3)
        shares.append(joint[1, 2] / joint[1].sum())
    assert answer.standard_error is not None
    assert 0.72 < np.var(shares, ddof=1) / answer.standard_error**2 < 1.36
    centre = fitted.marginal(AC).reshape(4, 3)
    assert (
        abs(np.mean(shares) - centre[1, 2] / centre[1].sum()) < 5 * answer.standard_error / NUMBER**0.5 + 1e-3
    )


def test_the_same_seed_gives_the_same_and_a_run_without_counts_of_all_rows_is_refused() -> None:
    released = measured(people(500), [AB, AC], [Fraction(9)] * 2, np.random.default_rng(3))
    fitted = model(released, 500)
    first, again = (
        Replicates(fitted, released, FACTS).model(np.random.default_rng(seed)).marginal(AB) for seed in (1, 1)
    )
    other = Replicates(fitted, released, FACTS).model(np.random.default_rng(2)).marginal(AB)
    assert (first == again).all() and (first != other).any()
    with pytest.raises(UnfitRun):
        Replicates(fitted, [], FACTS)
