"""Calibration: exact on a law that is known; sizes that contradict each other; responses."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from runner.review.audit.research.trainings import coins_of
from synth.research.florist.calibrate import BINS, Sizes, corrected, correction, flip_numerator
from synth.research.florist.evaluate import binned, quality
from synth.research.florist.labels import Labels, respond
from synth.research.florist.owners import noisy_rate

PEOPLE = 100_000
MISSED = 6.2
"""Standard deviations: a false alarm below 1e-9, two-sided."""


@pytest.mark.parametrize("labels", ["majority", "minority", "random-pos"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.1), (0.3, 0.3), (0.6, 0.3)])
@pytest.mark.parametrize("flip", [0.0, 0.119])
def test_a_corrected_probability_is_the_truth(labels: str, alpha: float, beta: float, flip: float) -> None:
    """x of ten values, P(1 | x) known; what the training sees is drawn person by person, then corrected by
    sizes alone."""
    rng = np.random.default_rng(7)
    law = np.linspace(0.05, 0.75, 10)
    x = rng.integers(0, 10, PEOPLE)
    y = rng.random(PEOPLE) < law[x]
    kind = rng.choice(
        3, PEOPLE, p=(1 - alpha - beta, alpha, beta)
    )  # both real, features invented, label invented
    pi = float(y.mean())
    shown_x = np.where(kind == 1, rng.permutation(x), x)
    invented = {"majority": 0.0, "minority": 1.0, "random-pos": pi}[labels]
    shown_y = np.where(kind == 2, rng.random(PEOPLE) < invented, y) ^ (rng.random(PEOPLE) < flip)
    sizes = Sizes(int((kind != 2).sum()), int((kind != 1).sum()), PEOPLE)
    line = correction(labels, "model", pi, sizes, flip)
    seen = np.array([shown_y[shown_x == value].mean() for value in range(10)])
    deviation = np.sqrt(0.25 / (PEOPLE / 10)) / line.slope
    assert np.abs(corrected(seen, line) - law).max() <= MISSED * deviation
    rates = np.array([y[x == value].mean() for value in range(10)])
    if line.slope >= 0.3:  # a tenth of the people is enough to see an error of 0.02
        assert np.abs(corrected(seen, line) - rates).mean() <= 0.02


def test_fractions_are_those_of_a_union_and_never_negative() -> None:
    assert Sizes(60, 70, 100).fractions == pytest.approx((0.3, 0.3, 0.4))
    assert min(Sizes(60, 70, 140).fractions) == 0.0


def test_embeddings_that_look_invented_leave_the_sum_and_so_do_labels_that_pull_nowhere() -> None:
    sizes = Sizes(60, 70, 100)
    gaussian = correction("majority", "gaussian", 0.25, sizes)
    assert (gaussian.slope, gaussian.offset) == pytest.approx((0.3 / 0.7, 0.0))
    redrawn = correction("random-pred", "model", 0.25, sizes)
    assert (redrawn.slope, redrawn.offset) == pytest.approx((0.5, 0.125))
    nearest = correction("neighbors", "model", 0.25, sizes)
    assert (nearest.slope, nearest.offset) == pytest.approx((0.7, 0.075))


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "2", "4", "31.5"])
def test_a_flip_is_never_rarer_than_the_claim_needs(epsilon: str) -> None:
    """(2^64 - n) / n <= e^epsilon in exact arithmetic, and n is the least such number up to one."""
    n, top = flip_numerator(Fraction(epsilon)), 1 << 64
    from mpmath import mp, mpf

    with mp.workdps(60):
        bound = mp.e ** mpf(epsilon)
        assert mpf(top - n) / n <= bound
        assert n == 1 << 63 or mpf(top - n + 2) / (n - 2) > bound


def law(
    status: int | None, strategy: str, pi: float, flips: int, other: int | None
) -> dict[tuple[int, ...], Fraction]:
    """Of the responses of two rows, exactly. status, other: their labels, None where the active owner holds
    no such record."""
    held = [place for place, label in enumerate((status, other)) if label is not None]
    labels = np.array([label for label in (status, other) if label is not None], np.uint8)
    invents = int(pi * 2.0**64)
    draws = [invents] * 2 * (strategy == "random-pos") + [flips] * 2
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for below in itertools.product((True, False), repeat=len(draws)):
        left = [0 if each else (1 << 64) - 1 for each in below]  # a coin below its threshold, or not

        def source(count: int, left: list[int] = left) -> bytes:
            taken, left[:] = left[: count // 8], left[count // 8 :]
            return b"".join(word.to_bytes(8, "little") for word in taken)

        made = Labels(2, np.array(held, np.int64), labels, strategy, pi, flips, source)
        assert not left
        chances = (
            Fraction(limit if each else (1 << 64) - limit, 1 << 64)
            for limit, each in zip(draws, below, strict=True)
        )
        found[tuple(made.values.tolist())] += math.prod(chances, start=Fraction(1))
    assert sum(found.values()) == 1
    return found


@pytest.mark.parametrize("strategy", ["majority", "minority", "random-pos"])
@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(2), Fraction(31)])
def test_no_response_tells_more_of_a_record_than_it_may(strategy: str, x: Fraction) -> None:
    """Label 0, label 1, not held: all pairs, all outcomes, whatever stands beside, in exact arithmetic; some
    pair uses it up."""
    flips, most = flip_numerator(x), Fraction(0)
    for pi, other in itertools.product((1e-6, 0.25, 0.999), (0, 1, None)):
        laws = [law(status, strategy, pi, flips, other) for status in (0, 1, None)]
        for one, another in itertools.permutations(laws, 2):
            most = max(most, *(one[view] / another[view] for view in one))
    kept = Fraction((1 << 64) - flips, flips)
    assert most == kept <= Fraction(math.exp(x)) * (1 + Fraction(1, 10**9))


def test_responses_flip_as_often_as_they_should() -> None:
    count, flips = 1_000_000, flip_numerator(Fraction(2))
    f = flips / 2**64
    for label in (0, 1):
        labels = np.full(count, label, np.uint8)
        changed = (respond(labels, flips, coins_of(f"responses {label}")) != labels).mean()
        assert abs(changed - f) <= MISSED * math.sqrt(f * (1 - f) / count)


def test_the_rate_is_a_count_with_noise_inside_its_limits() -> None:
    rates = [noisy_rate(250, 1000, Fraction(1000), coins_of(f"rate {i}")) for i in range(400)]
    assert abs(np.mean(rates) - 0.25) <= MISSED * math.sqrt(1000) / 1000 / 20
    assert 0.02 < np.std(rates) < 0.05 and len(set(rates)) > 50
    assert 0 < noisy_rate(0, 5, Fraction(10**6), coins_of("low")) < 1


def test_figures_of_exact_and_of_noisy_counts() -> None:
    people = np.zeros((2, BINS), np.int64)
    people[0, :16], people[1, 16:] = 5, 5
    assert quality(people).auc == 1.0 and quality(people[::-1]).auc == 0.0
    assert quality(np.ones((2, BINS))).auc == pytest.approx(0.5)
    assert quality(np.zeros(2 * BINS, np.int64)).auc == 0.5 and quality(np.zeros(2 * BINS)).ace == 0.0
    negative = people.copy()
    negative[0, 20] = -7
    assert quality(negative).auc == 1.0
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    drawn = (rng.random(len(p)) < p).astype(np.int64)
    counts = np.bincount(drawn * BINS + binned(p), minlength=2 * BINS)
    assert quality(counts).ace < 0.01
    shifted = np.bincount(drawn * BINS + binned(np.clip(p + 0.2, 0, 1)), minlength=2 * BINS)
    assert quality(shifted).ace > 0.1
    assert binned(np.array([0.0, 1.0, 0.999999])).tolist() == [0, BINS - 1, BINS - 1]
