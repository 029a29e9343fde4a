"""An owner's own randomness: batches, fakes and noise of its critic (`docs/design/vertigan.md`).

All of it comes from the operating system, is told to nobody, and is fresh in each run. What the charge rests on: a row is taken
with probability exactly `rate`, and the noise is discrete Gaussian within `LOCAL_DISTANCE`. Fakes, interpolations and lanes
belong to the row that they are compared with, never to its place in a batch: else one row more or less would pair all others
anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.mechanisms.gaussian import LOCAL_BITS, HalfTable, sampler
from synth.algorithms.vertigan.seats import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE_BITS: Final = 32
"""A batch's rate is a fraction of 2^32, and charged as drawn."""
LOCAL_DISTANCE: Final = Fraction(1, 2**70)
"""Bound of the statistical distance between one drawn noise and the exact one; the tables' own bound is checked against it."""


class Coins:
    """source: as many uniform bytes as it is asked for."""

    def __init__(self, source: Callable[[int], bytes] = os.urandom) -> None:
        self._source = source

    def included(self, rows: int, rate: Fraction) -> NDArray[np.int64]:
        """Which of the rows are in a batch: each with probability `rate`, a fraction of 2^32."""
        limit = rate * (1 << RATE_BITS)
        if limit.denominator != 1:
            raise ValueError(f"A rate must be a fraction of 2^{RATE_BITS}, got {rate}.")
        return np.flatnonzero(self._words(rows) < np.uint64(int(limit)))

    def fakes(
        self, rows: NDArray[np.int64], latent: int, width: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """For each of these rows: the generator's input (n, latent) and Gumbel noise (n, width), and the interpolation (n, 1)."""
        n = len(rows)
        return self.normal((n, latent)), gumbel(self.uniform((n, width))), self.uniform((n, 1))

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of these rows its place in a block: uniform below `LANES`."""
        return np.frombuffer(self._source(len(rows)), np.uint8).astype(np.int64) % LANES

    def uniform(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Numbers strictly between 0 and 1."""
        words = self._words(shape[0] * shape[1]).astype(np.float64)
        return np.asarray(((words + 0.5) / (1 << RATE_BITS)).reshape(shape).clip(1e-9, 1 - 1e-7), np.float32)

    def normal(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Standard normal numbers: fakes only, never the noise of a release."""
        count = shape[0] * shape[1]
        half = self.uniform((2, (count + 1) // 2)).astype(np.float64)
        radius, angle = np.sqrt(-2 * np.log(half[0])), 2 * np.pi * half[1]
        found = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
        return np.asarray(found.reshape(shape), np.float32)

    def noise(self, sigma2: Fraction, count: int) -> NDArray[np.int64]:
        """Discrete Gaussian integers of this parameter."""
        drawn = np.zeros(count, np.int64)
        for multiplier, table in local_sampler(sigma2).parts:
            magnitude = _inverted(table, self._long(count), self._long(count))
            signs = np.unpackbits(np.frombuffer(self._source(-(-count // 8)), np.uint8), count=count)
            drawn += multiplier * (1 - 2 * signs.astype(np.int64)) * magnitude
        return drawn

    def _words(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._source(4 * count), np.uint32)

    def _long(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._source(8 * count), np.uint64)


def local_sampler(sigma2: Fraction) -> Any:
    """The tables of an owner's own noise, of 128 bits. Raises `StudyInvalid`."""
    found = sampler(sigma2, LOCAL_BITS)
    if found.tv > LOCAL_DISTANCE:
        raise ArithmeticError(
            "The tables of local noise are farther from the exact distribution than is charged."
        )
    return found


def gumbel(uniform: NDArray[Any]) -> NDArray[np.float32]:
    """Gumbel noise from uniform numbers."""
    return np.asarray(-np.log(-np.log(uniform.astype(np.float64))), np.float32)


def _inverted(table: HalfTable, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many thresholds are at most 2^64 high + low: by the high words, and by the low ones where those tie."""
    tops = np.array([threshold >> 64 for threshold in table.thresholds], np.uint64)
    found = np.searchsorted(tops, high, side="left").astype(np.int64)
    until = np.searchsorted(tops, high, side="right")
    for place in np.flatnonzero(found < until):
        value = int(high[place]) << 64 | int(low[place])
        found[place] = table.invert(value)
    return found
