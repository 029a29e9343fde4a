"""Discrete Gaussian noise by table inversion: a half table and a free sign bit (`docs/design/mechanisms.md`
3.1, 3.3).

Problem: X with P(X = x) proportional to exp(-x^2 / (2 sigma^2)) on the integers (Canonne, Kamath, Steinke
2020), from uniform bits that parties share for nothing. sigma^2 is an exact rational.

    t_j = round(2^64 P(|X| <= j)), j = 0 .. B-1,  B the least with P(|X| > B) <= 2^-64
    k = #{j : U >= t_j},  U uniform on 64 bits;  X = (1 - 2 s) k,  s a uniform bit

Above sigma = 100: X = X1 + K X2 with sigma1 = 1.6 K, sigma1^2 + K^2 sigma2^2 = sigma^2, K = 2^round(lg
sqrt(sigma / 1.6)).

Statement, proven there. One draw is within total variation `Sampler.tv` of the discrete Gaussian, an exact
upper bound computed with the table; of a sum of two, both tables' TV and kap / (1 - kap) with kap = 2
sum_{m>=1} exp(-2 pi^2 m^2 (s/K)^2), s = sigma1 K sigma2 / sigma.

All thresholds come from certified integer enclosures (`interval`), so every machine computes the same
integers. Threat model: sigma^2 and the table are public; U, s and X are secret (shares; in `ideal`: in the
clear).
"""

from __future__ import annotations

import hashlib
import secrets
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.mechanisms.interval import (
    Interval,
    enclose,
    exp_minus,
    product,
    quotient,
    round_up,
    rounded,
)
from mpc_protocols.process.later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS: Final = 64
"""Uniform bits of one draw from one half table (the sign takes one more)."""
LOCAL_BITS: Final = 128
"""The same where one party draws for itself, so that bits cost nothing: thresholds of so many bits, tails cut
at 2^-128."""
MIN_SIGMA2: Final = Fraction(1, 64)
"""Below, the table is about to have no threshold at all: not a noise anybody should want."""
MAX_SIGMA2: Final = Fraction(2**40)
MAX_TABLE_SIGMA2: Final = Fraction(100**2)
"""sigma^2 up to which one table is used; above, a sum of two is smaller."""
_PI_BELOW: Final = Fraction(103993, 33102)
_TV_PLACES: Final = 128


@dataclass(frozen=True)
class HalfTable:
    """Thresholds of |X|: P(|X| <= j) in units of 2^-places, for j = 0 .. bound - 1; non-decreasing, each
    below 2^places."""

    sigma2: Fraction
    thresholds: tuple[int, ...]
    tv: Fraction
    places: int = BITS

    @property
    def bound(self) -> int:
        """The greatest |X| this table can give."""
        return len(self.thresholds)

    def invert(self, uniform: int) -> int:
        """|X| for one draw of `places` uniform bits."""
        return bisect_right(self.thresholds, uniform)


@dataclass(frozen=True)
class Sampler:
    """X = sum of multiplier times a signed draw of the half table, over the parts (one, or two for a wide
    sigma).

    sigma2: the variance parameter. tv: bound on the total variation distance of X from the ideal one. bound:
    greatest |X|.
    """

    sigma2: Fraction
    parts: tuple[tuple[int, HalfTable], ...]
    tv: Fraction
    bound: int

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the multipliers and thresholds; hashed into the transcript of every step that uses them."""
        hashed = hashlib.sha256()
        for multiplier, table in self.parts:
            hashed.update(multiplier.to_bytes(8, "big") + table.bound.to_bytes(8, "big"))
            hashed.update(b"".join(t.to_bytes(table.places // 8, "big") for t in table.thresholds))
        return hashed.digest()


def _weights(sigma2: Fraction, bits: int) -> list[Interval]:
    """exp(-j^2 / (2 sigma^2)) for j = 0, 1, .. until it falls below 2^-bits."""
    first = exp_minus(enclose(1 / (2 * sigma2), bits), bits)
    square = product(first, first, bits)
    weights = [(1 << bits, 1 << bits)]
    ratio = first  # exp(-(2 j + 1) / (2 sigma^2))
    while weights[-1][0] > 0:
        weights.append(product(weights[-1], ratio, bits))
        ratio = product(ratio, square, bits)
    return weights


def _try_half_table(sigma2: Fraction, bits: int, places: int) -> HalfTable | None:
    weights = _weights(sigma2, bits)
    # Beyond the last weight w_J: w_{J+i} <= w_J w_1^i, a geometric series of ratio w_1 < 1.
    beyond = 2 * quotient(weights[-1], ((1 << bits) - weights[1][1],) * 2, bits)[1]
    low = weights[0][0] + 2 * sum(w[0] for w in weights[1:])
    high = weights[0][1] + 2 * sum(w[1] for w in weights[1:]) + beyond
    normaliser = (low, high)
    thresholds: list[int] = []
    half: list[Interval] = []  # bounds of P(|X| <= j)
    total = weights[0]
    unit = 1 << bits - places
    for weight in [*weights[1:], (0, 0)]:
        p = quotient(total, normaliser, bits)
        p = p[0], min(p[1], 1 << bits)
        half.append(p)
        tail_low, tail_high = (1 << bits) - p[1], (1 << bits) - p[0]
        if tail_high <= unit:
            break
        threshold = rounded(p, bits, places)
        if tail_low <= unit or threshold is None:  # not settled at this precision
            return None
        thresholds.append(threshold)
        total = total[0] + 2 * weight[0], total[1] + 2 * weight[1]
    distance = round_up(_table_distance(thresholds, half, bits, places), 2 * places)
    return HalfTable(sigma2, tuple(thresholds), distance, places)


def _table_distance(thresholds: Sequence[int], cdf: Sequence[Interval], bits: int, places: int) -> Fraction:
    """Upper bound of the TV between the table's |X| and the ideal one; `cdf` has one entry more than
    `thresholds`."""
    errors = [(0, 0)]  # e_{-1} = 0
    for t, (low, high) in zip(thresholds, cdf, strict=False):
        scaled = t << bits - places
        errors.append((scaled - high, scaled - low))
    tail = (1 << bits) - cdf[-1][1], (1 << bits) - cdf[-1][0]
    doubled = sum(_magnitude(errors[j], errors[j - 1]) for j in range(1, len(errors)))
    return Fraction(doubled + _magnitude(tail, errors[-1]) + tail[1], 1 << bits + 1)


def _magnitude(x: Interval, y: Interval) -> int:
    """Upper bound of |x - y|."""
    return max(abs(x[1] - y[0]), abs(x[0] - y[1]))


def half_table(sigma2: Fraction, places: int = BITS) -> HalfTable:
    """The half table of one sigma^2: about 3 ms at sigma = 100, in proportion to sigma."""
    bits = 320
    while (table := _try_half_table(sigma2, bits, places)) is None:
        bits *= 2
    return table


def _convolution_multiplier(sigma2: Fraction) -> int:
    """K = 2^e with e = round(lg sqrt(sigma / 1.6)), decided exactly: 2^(4e-2) <= sigma^2 / 2.56 < 2^(4e+2)."""
    squared = sigma2 / Fraction(256, 100)
    exponent = 0
    while squared >= 1 << 4 * exponent + 2:
        exponent += 1
    return 1 << exponent


def _convolution_distance(narrow: Fraction, wide: Fraction, sigma2: Fraction) -> Fraction:
    """Upper bound of kap / (1 - kap) for X1 + K X2 with variances `narrow` and `wide` (of X2), (s/K)^2 =
    narrow wide / sigma2."""
    bits = 320
    exponent = 2 * _PI_BELOW**2 * narrow * wide / sigma2
    first = Fraction(exp_minus(enclose(exponent, bits), bits)[1], 1 << bits)
    kap = 2 * first / (1 - first)  # sum_m first^(m^2) <= first / (1 - first)
    return kap / (1 - kap)


@lru_cache(maxsize=256)
def sampler(sigma2: Fraction, places: int = BITS) -> Sampler:
    """The sampler of one sigma^2, the same integers on every machine. places: bits of the thresholds, `BITS`
    or `LOCAL_BITS`.

    Raises `StudyInvalid` outside 1/64 <= sigma^2 <= 2^40.
    """
    if not MIN_SIGMA2 <= sigma2 <= MAX_SIGMA2:
        raise StudyInvalid(
            f"The noise variance of a measurement would be {float(sigma2):.3g}, outside {float(MIN_SIGMA2):.3g} .. "
            f"{float(MAX_SIGMA2):.3g}; choose an epsilon that fits the number of measurements."
        )
    if sigma2 <= MAX_TABLE_SIGMA2:
        table = half_table(sigma2, places)
        return Sampler(sigma2, ((1, table),), table.tv, table.bound)
    multiplier = _convolution_multiplier(sigma2)
    narrow = Fraction(256, 100) * multiplier**2
    wide = (sigma2 - narrow) / multiplier**2
    first, second = half_table(narrow, places), half_table(wide, places)
    tv = first.tv + second.tv + round_up(_convolution_distance(narrow, wide, sigma2), _TV_PLACES)
    return Sampler(sigma2, ((1, first), (multiplier, second)), tv, first.bound + multiplier * second.bound)


def reference(of: Sampler, uniforms: Sequence[int], signs: Sequence[int]) -> int:
    """X for one draw: per part, `BITS` uniform bits and a sign bit. The secure sampler must equal it bit for
    bit."""
    return sum(
        multiplier * (1 - 2 * sign) * table.invert(uniform)
        for (multiplier, table), uniform, sign in zip(of.parts, uniforms, signs, strict=True)
    )


def reference_array(of: Sampler, uniforms: NDArray[np.uint64], signs: NDArray[np.uint8]) -> NDArray[np.int64]:
    """`reference` for many draws at once: uniforms and signs (0 or 1) of shape (parts, n); int64 of shape
    (n,)."""
    if uniforms.shape != signs.shape or uniforms.ndim != 2 or len(uniforms) != len(of.parts):
        raise ValueError(
            f"Expected {len(of.parts)} rows of uniforms and signs, got shapes {uniforms.shape} and {signs.shape}."
        )
    drawn = np.zeros(uniforms.shape[1], dtype=np.int64)
    for (multiplier, table), uniform, sign in zip(of.parts, uniforms, signs, strict=True):
        magnitude = np.searchsorted(np.array(table.thresholds, dtype=np.uint64), uniform, side="right")
        drawn += multiplier * (1 - 2 * sign.astype(np.int64)) * magnitude
    return drawn


def sample(
    of: Sampler, n: int, randomness: Callable[[int], bytes] = secrets.token_bytes
) -> NDArray[np.int64]:
    """n independent draws in the clear, int64 of shape (n,); exactly the distribution of the tables."""
    parts = len(of.parts)
    uniforms = np.frombuffer(randomness(8 * parts * n), dtype=np.uint64).reshape(parts, n)
    bits = np.frombuffer(randomness((parts * n + 7) // 8), dtype=np.uint8)
    return reference_array(of, uniforms, np.unpackbits(bits, count=parts * n).reshape(parts, n))
