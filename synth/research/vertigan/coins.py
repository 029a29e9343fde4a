"""An owner's own randomness: batches, fakes and noise of its critic (`docs/design/vertigan.md`).

All of it comes from the operating system, is told to nobody, and is fresh in each run. What the charge rests
on: a row is taken with probability exactly `rate`, and the noise is discrete Gaussian within
`LOCAL_DISTANCE`. Fakes, interpolations and lanes belong to the row that they are compared with, never to its
place in a batch: else one row more or less would pair all others anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.mechanisms.gaussian import LOCAL_BITS, HalfTable, sampler
from synth.research.vertigan.seats import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE_BITS: Final = 32
"""A batch's rate is a fraction of 2^32, and charged as drawn."""
LOCAL_DISTANCE: Final = Fraction(1, 2**70)
"""Bound of the statistical distance between one drawn noise and the exact one; the tables' own bound is
checked against it."""


class Coins:
    """source: as many uniform bytes as it is asked for."""

    def __init__(self, source: Callable[[int], bytes] = os.urandom) -> None:
        self._source = source

    def included(self, rows: int, rate: Fraction) -> NDArray[np.int64]:
        """Which of the rows are in a batch: each with probability `rate`, a fraction of 2^32."""
        limit = rate * (1 << RATE_BITS)
        if limit.denominator != 1:
            raise ValueError(f"A rate must be a fraction of 2^{RATE_BITS}, got {rate}.")
        first, rest = divmod(int(limit), 1 << RATE_BITS - 8)
        bytes_ = np.frombuffer(
            self._source(rows), np.uint8
        )  # the first 8 of 32 bits; the others where those tie
        tied = np.flatnonzero(bytes_ == first)
        taken = bytes_ < first
        taken[tied] = self._words(len(tied)) >> 8 < rest
        return np.flatnonzero(taken)

    def fakes(
        self, rows: NDArray[np.int64], latent: int, width: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """For each of these rows: the generator's input (n, latent) and Gumbel noise (n, width), and the
        interpolation (n, 1).

        The first two are looked up in tables of 2^16 equal slices: a number is the same wherever it is looked
        up.
        """
        n = len(rows)
        z, noise = (
            values[self._shorts((n, size))] for values, size in zip(_slices(), (latent, width), strict=True)
        )
        return z, noise, self.uniform((n, 1))

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of these rows its place in a block: uniform below `LANES`."""
        return np.frombuffer(self._source(len(rows)), np.uint8).astype(np.int64) % LANES

    def uniform(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Numbers strictly between 0 and 1."""
        words = self._words(shape[0] * shape[1]).astype(np.float64)
        return np.asarray(((words + 0.5) / (1 << RATE_BITS)).reshape(shape).clip(1e-9, 1 - 1e-7), np.float32)

    def noise(self, sigma2: Fraction, count: int) -> NDArray[np.int64]:
        """Discrete Gaussian integers of this parameter."""
        drawn = np.zeros(count, np.int64)
        for multiplier, table in local_sampler(sigma2).parts:
            magnitude = _inverted(table, self._long(count), self._long)
            signs = np.unpackbits(np.frombuffer(self._source(-(-count // 8)), np.uint8), count=count)
            drawn += multiplier * (1 - 2 * signs.astype(np.int64)) * magnitude
        return drawn

    def _words(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._source(4 * count), np.uint32)

    def _shorts(self, shape: tuple[int, int]) -> NDArray[np.uint16]:
        return np.frombuffer(self._source(2 * shape[0] * shape[1]), np.uint16).reshape(shape)

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


@cache
def _slices() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The normal and the Gumbel quantiles of the middles of 2^16 equal slices: of fakes only, never the noise
    of a release."""
    middles = (np.arange(1 << 16) + 0.5) / (1 << 16)
    upper = [NormalDist().inv_cdf(middle) for middle in middles[1 << 15 :]]
    return np.array([-value for value in reversed(upper)] + upper, np.float32), gumbel(middles)


def _inverted(
    table: HalfTable, high: NDArray[np.uint64], low: Callable[[int], NDArray[np.uint64]]
) -> NDArray[np.int64]:
    """How many thresholds are at most 2^64 high + low: by the high words, and by low ones, drawn where those
    tie."""
    tops = np.array([threshold >> 64 for threshold in table.thresholds], np.uint64)
    found = np.searchsorted(tops, high, side="left").astype(np.int64)
    tied = np.flatnonzero(tops[np.minimum(found, len(tops) - 1)] == high) if len(tops) else found[:0]
    for place, word in zip(tied, low(len(tied)), strict=True):
        found[place] = table.invert(int(high[place]) << 64 | int(word))
    return found
