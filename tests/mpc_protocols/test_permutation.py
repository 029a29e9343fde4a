"""Permutations out of keys: uniform, of any length, drawn again whole where keys are equal."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from mpc_protocols.engine.noise import permutation
from mpc_protocols.engine.noise.permutation import uniform_permutation
from mpc_protocols.engine.prg import KeyStream

pytestmark = pytest.mark.parametrize("packed", [0, 1 << 18])


def test_ties_draw_all_keys_again(monkeypatch: pytest.MonkeyPatch, packed: int) -> None:
    """Keys that are not all different are thrown away whole, whether or not they hold their places."""
    monkeypatch.setattr(permutation, "PACKED", packed)
    draws = []

    def fill(keys: NDArray[np.uint64]) -> None:
        draws.append(len(keys))
        keys[:] = [5 << 20, 3 << 20, 5 << 20] if len(draws) < 3 else [7 << 20, 9 << 20, 8 << 20]

    assert uniform_permutation(3, fill).tolist() == [0, 2, 1] and draws == [3, 3, 3]


def test_every_length(monkeypatch: pytest.MonkeyPatch, packed: int) -> None:
    monkeypatch.setattr(permutation, "PACKED", packed)
    for count in (0, 1, 2, 1000):
        drawn = uniform_permutation(count, KeyStream(bytes(16)).reader(1).fill)
        assert drawn.dtype == np.int64 and sorted(drawn.tolist()) == list(range(count))


def test_uniform(monkeypatch: pytest.MonkeyPatch, packed: int) -> None:
    """24 permutations of 4, 12,000 draws: chi-square at a false alarm of 1e-9."""
    monkeypatch.setattr(permutation, "PACKED", packed)
    stream = KeyStream(bytes(range(16)))
    drawn = Counter(
        tuple(uniform_permutation(4, stream.reader(number).fill).tolist()) for number in range(12_000)
    )
    statistic = sum((drawn[key] - 500) ** 2 / 500 for key in drawn) + 500 * (24 - len(drawn))
    assert statistic < chi2.isf(1e-9, 23)
