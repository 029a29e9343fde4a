"""Shares of groups within groups: the intervals that `infer` gives, for what a picture draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mpc_protocols.functionality import Level
from synth.inference import UnfitRun
from synth.inference.groups import Shares
from tests.synth.inference.small import AB, AC, BC, DOMAIN, FACTS, ask, measured, model, people

NOISE = Fraction(400)


def test_they_are_those_of_the_same_question() -> None:
    table = people(4000)
    released = measured(table, [AB, AC], [NOISE] * 2, np.random.default_rng(2))
    fitted = model(released, 4000)
    shares = Shares(DOMAIN, fitted, released, FACTS)
    [[first, second], [low, _]] = shares("c", [(0,), (1,), (2,)], "a", [(1,), (2, 3)])
    for text, interval in (
        ("share(c == 0 | a == 1)", first),
        ("share(c <= 1 | a == 1)", second),
        ("share(c == 0 | a >= 2)", low),
    ):
        [answer] = ask([text], released, fitted, target="rows")
        assert interval is not None and answer.low is not None and answer.high is not None
        assert np.allclose(interval, (answer.low, answer.high))


def test_bins_are_those_of_the_finest_measurement_of_both_columns_and_groups_of_them_are_sure() -> None:
    table = people(4000)
    levels = [Level("a/2", "a", (0, 0, 1, 1)), Level("a/3", "a", (0, 1, 2, 2)), Level("c/2", "c", (0, 1, 1))]
    rng = np.random.default_rng(2)
    cliques = [("a/2", "c/2"), ("a/3", "c/2"), ("a/2", "b"), ("b", "c")]
    released = measured(table, cliques, [NOISE] * 4, rng, levels=levels)
    fitted = model(released, 4000)
    shares = Shares(DOMAIN, fitted, released, FACTS)
    assert shares.bins(AC) == {"a": (0, 1, 2, 2), "c": (0, 1, 1)} and shares.bins(AB) == {"a": (0, 0, 1, 1)}
    assert shares.bins(BC) == shares.bins(("c", "a", "b")) == {}
    [[whole], [part]] = shares("c", [(0,), (1, 2)], "a", [(2, 3), (2,)])
    assert whole is not None and part is not None and whole[1] - whole[0] < 0.3 < part[1] - part[0]


def test_what_was_not_measured_together_has_none_and_a_run_without_counts_of_all_rows_is_refused() -> None:
    table = people(4000)
    released = measured(table, [AB, AC], [NOISE] * 2, np.random.default_rng(2))
    fitted = model(released, 4000)
    shares = Shares(DOMAIN, fitted, released, FACTS)
    assert shares("c", [(0,), (1, 2)], "b", [(0,), (1,)]) == [[None], [None]]
    assert BC not in [m.clique for m in released]
    with pytest.raises(UnfitRun):
        Shares(DOMAIN, fitted, [], FACTS)
