"""An owner's own randomness: its laws. Samples are large enough for false alarms below 1e-9 a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.mechanisms.gaussian import LOCAL_BITS, half_table
from synth.research.vertigan.coins import LOCAL_DISTANCE, Coins, _inverted, local_sampler

SIGMA2 = Fraction(3, 2) ** 2 * (1 << 28)


def seeded(seed: int) -> Callable[[int], bytes]:
    return np.random.default_rng(seed).bytes


def test_noise_has_its_standard_deviation() -> None:
    """Mean and variance of 10^5 draws within 6.5 standard errors each (false alarms below 2e-10)."""
    drawn = Coins(seeded(1)).noise(SIGMA2, 100_000).astype(np.float64)
    sigma = math.sqrt(SIGMA2)
    assert abs(drawn.mean()) < 6.5 * sigma / math.sqrt(1e5)
    assert abs(drawn.var() / sigma**2 - 1) < 6.5 * math.sqrt(2 / 1e5)
    assert (drawn > 0).mean() == pytest.approx(0.5, abs=6.5 * 0.5 / math.sqrt(1e5))


def test_tables_are_inverted_with_all_their_bits() -> None:
    """High words alone decide nearly always; where they tie the low ones do."""
    table = half_table(Fraction(9), LOCAL_BITS)
    words = [value for t in table.thresholds for value in (t - 1, t, t + 1)] + [0, (1 << 128) - 1]
    high = np.array([value >> 64 for value in words], np.uint64)
    low = np.array([value & ((1 << 64) - 1) for value in words], np.uint64)
    ties = np.isin(high, np.array([t >> 64 for t in table.thresholds], np.uint64))
    asked: list[int] = []

    def drawn(count: int) -> Any:
        asked.append(count)
        return low[ties]

    assert _inverted(table, high, drawn).tolist() == [table.invert(value) for value in words]
    assert asked == [ties.sum()] and 3 * len(table.thresholds) - 4 <= ties.sum() < len(words)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 2), Fraction(63)])
def test_the_tables_are_as_exact_as_they_are_charged(sigma: Fraction) -> None:
    for scaled in (sigma**2, sigma**2 * (1 << 28)):
        assert local_sampler(scaled).tv <= LOCAL_DISTANCE


def test_rows_are_in_a_batch_at_the_rate() -> None:
    coins, rate = Coins(seeded(2)), Fraction(1 << 27, 1 << 32)
    found = np.bincount(np.concatenate([coins.included(1_000, rate) for _ in range(400)]), minlength=1_000)
    expected = 400 * float(rate)
    assert abs(found.sum() - 1_000 * expected) < 6.5 * math.sqrt(1_000 * expected)
    assert found.max() < expected + 8 * math.sqrt(expected) + 20
    with pytest.raises(ValueError, match="fraction of 2\\^32"):
        coins.included(10, Fraction(1, 3))


def test_a_row_is_in_a_batch_if_its_32_bits_are_below_the_rate() -> None:
    """8 bits of each row decide, 24 more where those tie: the law of one number of 32 bits, at every rate."""

    def source(words: list[int], left: list[int]) -> Callable[[int], bytes]:
        drawn = iter(
            [
                bytes(word >> 24 for word in words),
                b"".join((word << 8 & 0xFFFFFFFF).to_bytes(4, "little") for word in left),
            ]
        )
        return lambda count: next(drawn)[:count]

    words = [0, 1, (5 << 24) - 1, 5 << 24, (5 << 24) + 6, (5 << 24) + 7, 6 << 24, (1 << 32) - 1]
    for limit in (0, 1, 5 << 24, (5 << 24) + 7, (1 << 32) - 1, 1 << 32):
        tied = [word for word in words if word >> 24 == limit >> 24]
        found = Coins(source(words, tied)).included(len(words), Fraction(limit, 1 << 32))
        assert found.tolist() == [place for place, word in enumerate(words) if word < limit]


def test_fakes_are_uniform_and_normal() -> None:
    z, gumbel, mix = Coins(seeded(3)).fakes(np.arange(2_000), 32, 20)
    assert z.shape == (2_000, 32) and gumbel.shape == (2_000, 20) and mix.shape == (2_000, 1)
    assert abs(z.mean()) < 6.5 / math.sqrt(z.size) and abs(z.var() - 1) < 6.5 * math.sqrt(2 / z.size)
    assert abs(gumbel.mean() - 0.57722) < 6.5 * 1.2826 / math.sqrt(gumbel.size)
    assert mix.min() > 0 and mix.max() < 1 and abs(mix.mean() - 0.5) < 6.5 * 0.289 / math.sqrt(2_000)


def test_the_operating_systems_coins_are_never_the_same() -> None:
    rows = np.arange(50)
    assert not np.array_equal(Coins().noise(SIGMA2, 50), Coins().noise(SIGMA2, 50))
    assert not np.array_equal(Coins().fakes(rows, 8, 4)[0], Coins().fakes(rows, 8, 4)[0])
    half = Fraction(1, 2)
    assert not np.array_equal(Coins().included(200, half), Coins().included(200, half))
