"""What a client chooses by: how far one row moves it, over all neighbours of all tiny tables; and the law of
the choice."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from synth.algorithms.flaim.scores import Counts, against_columns, choose, distances, lcm_of, scaled_to
from tests.synth.flaim.world import DOMAIN, counter

CLIQUES: list[Clique] = [("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("c",)]
COLUMNS: list[Clique] = [("a",), ("b",), ("c",)]
ROWS = np.array(list(itertools.product(range(2), range(3), range(2))))


def answers(rng: np.random.Generator, rows: int) -> dict[Clique, Counts]:
    shares = [rng.dirichlet(np.full(DOMAIN.cells(clique), 0.5)) for clique in CLIQUES]
    return dict(zip(CLIQUES, scaled_to(shares, rows, rng.random(), 4096), strict=True))


def scores(rows: NDArray[np.int64], of: dict[Clique, Counts]) -> tuple[list[int], list[int], int]:
    """(L1 distances, Private's distances times the scale, the scale)."""
    l1 = distances(dict(zip(CLIQUES, counter(rows)(CLIQUES), strict=True)), of, CLIQUES)
    scale = lcm_of(CLIQUES)
    return [l1[q] for q in CLIQUES], against_columns(l1, CLIQUES, scale), scale


def test_a_row_moves_a_distance_by_one_and_with_the_columns_by_two() -> None:
    """All tables of up to three rows, every row added to each, against several models; add-remove."""
    most = [0.0, 0.0]
    for model in range(4):
        of = answers(np.random.default_rng(model), model)
        known = {
            rows: scores(ROWS[list(rows)], of)
            for size in range(4)
            for rows in itertools.combinations_with_replacement(range(len(ROWS)), size)
        }
        for rows, (plain, against, scale) in known.items():
            if len(rows) == 3:
                continue
            for added in range(len(ROWS)):
                other, other_against, _ = known[tuple(sorted((*rows, added)))]
                moved = max(abs(x - y) for x, y in zip(plain, other, strict=True))
                moved_against = max(abs(x - y) for x, y in zip(against, other_against, strict=True))
                assert moved <= 1
                assert moved_against <= 2 * scale
                most = [max(most[0], moved), max(most[1], moved_against / scale)]
    assert most == [1, 2]  # both are reached: the charges are not larger than they need be


def test_the_mean_over_columns_is_kept_exactly() -> None:
    l1 = {("a",): 1, ("b",): 2, ("c",): 5, ("a", "b", "c"): 7, ("a", "b"): 3}
    cliques: list[Clique] = [("a", "b", "c"), ("a", "b"), ("c",)]
    scale = lcm_of(cliques)
    found = against_columns(l1, cliques, scale)
    assert [Fraction(x, scale) for x in found] == [7 - Fraction(8, 3), Fraction(3, 2), 0]


def test_answers_are_whole_counts_of_the_clients_size() -> None:
    shares = [np.full(7, 1 / 7), np.array([0.25, 0.75])]
    wide, narrow = scaled_to(shares, 100, 0.3, 4096)
    assert abs(int(wide.sum()) - 100) <= 1
    assert set(wide.tolist()) <= {14, 15}
    assert narrow.tolist() == [25, 75]
    assert [x.tolist() for x in scaled_to(shares, -5, 0.3, 4096)] == [[0] * 7, [0, 0]]


@pytest.mark.parametrize("lowest", [0, 40])
def test_choices_follow_the_exponential_mechanism(lowest: int) -> None:
    """Of three candidates 4,000 times: each frequency within 6.5 deviations (false alarm below 3e-10 in all)."""
    rng = np.random.default_rng(5)
    found, draws, epsilon, penalties = (
        Counter[int](),
        4000,
        Fraction(1, 2),
        [Fraction(0), Fraction(2), Fraction(1)],
    )
    values = [12, 10 - lowest // 4, 7]
    for _ in range(draws):
        found[
            choose(
                values,
                [Fraction(1), Fraction(2), Fraction(1)],
                penalties,
                epsilon,
                factor=2,
                highest=400,
                lowest=lowest,
                randomness=rng.bytes,
            )
        ] += 1
    scores = [w * (v - float(p)) for w, v, p in zip((1, 2, 1), values, penalties, strict=True)]
    sensitivity = 2 * 2  # the factor times the largest weight
    odds = np.exp(float(epsilon) * np.array(scores) / (2 * sensitivity))
    expected = odds / odds.sum()
    for q, chance in enumerate(expected):
        deviation = np.sqrt(chance * (1 - chance) / draws)
        assert abs(found[q] / draws - chance) < 6.5 * deviation + 0.002  # the integer grid's own distance
