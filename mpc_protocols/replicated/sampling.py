"""Shared noise that nobody knows: the dithered Gumbel noise of a selection and the discrete Gaussian of a measurement.

Both are table inversions (`search`) of shared uniform bits, which are free, followed by one weighted sum of bits
(`mechanisms.md` 1.5, 3.1, 3.3); they equal `mechanisms.selection.reference` and `mechanisms.gaussian.reference` bit for bit.

    Gumbel    2^a K + V: 80 bits U and a bits V per candidate. Up to 320 candidates radix 64 x 64: 15 rounds, 22,682 ANDs a
              candidate; then 16 x 16 x 16: 24 rounds, 9,193 ANDs; and so on. 2 rounds to the ring.
    Gaussian  x = (1 - 2s) k = sum_j 2^j (k_j ^ s) - (2^t - 1) s: per part of the sampler 64 bits U and a sign s per cell; 2
              rounds to the ring.

The layout of a search follows from the table's size and the number of cells alone (`search.layout_for`).

The random bits come from streams bound to the release (`release_bits`): the same release, inputs and input sharing give the
same noise, anything else gives fresh noise. Privacy does not depend on the ring: adding the noise wraps like any other sum.

Threat model: `trio`, semi-honest, one corrupted party; it knows two of three components of every bit, which is nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import HalfTable, Sampler
from mpc_protocols.replicated.bitslice import words_for
from mpc_protocols.replicated.boolean import BitShare, concatenate, random_bits
from mpc_protocols.replicated.conversion import weighted_sum
from mpc_protocols.replicated.ring import RingShare, add_public
from mpc_protocols.replicated.ring import concatenate as join
from mpc_protocols.replicated.search import Layout, batch_words, layout_for, search
from mpc_protocols.replicated.trio import Trio, UInt

BitSource = Callable[[tuple[int, ...]], BitShare]
"""Fresh shared uniform words of a shape, in the order of the calls."""


def gumbel_layout(count: int) -> Layout:
    """Layout of the search for so many candidates."""
    return layout_for(gumbel.HIGH - gumbel.LOW, gumbel.BITS, words_for(count))


def release_bits(trio: Trio, release: bytes) -> BitSource:
    """The random bits of one release; `release` is the hash of everything they are bound to (`mechanisms.md` 4)."""
    streams = trio.noise_streams(release)
    drawn = 0

    def draw(shape: tuple[int, ...]) -> BitShare:
        nonlocal drawn
        drawn += 1
        return random_bits(streams, shape, drawn)

    return draw


def gumbel_noise(trio: Trio, source: BitSource, count: int, a: int, dtype: UInt) -> RingShare:
    """2^a K + V for `count` candidates: a share of shape (count,) modulo 2^K of the dtype."""
    words = words_for(count)
    uniform = source((gumbel.BITS, words))
    dither = source((a, words))
    digits = search(trio, uniform, gumbel.THRESHOLDS, gumbel_layout(count))
    weights = [1 << a + j for j in range(len(digits))] + [1 << j for j in range(a)]
    noise = weighted_sum(trio, concatenate([digits, dither]), weights, count, dtype)
    return add_public(trio, noise, np.full(count, gumbel.LOW << a, np.int64))


def gaussian_noise(trio: Trio, source: BitSource, sampler: Sampler, count: int, dtype: UInt) -> RingShare:
    """Independent draws of the sampler: a share of shape (count,)."""
    noise = _half_table_noise(trio, source, *sampler.parts[0], count, dtype)
    for multiplier, table in sampler.parts[1:]:
        noise = noise + _half_table_noise(trio, source, multiplier, table, count, dtype)
    return noise


def _half_table_noise(trio: Trio, source: BitSource, multiplier: int, table: HalfTable, count: int, dtype: UInt) -> RingShare:
    layout = layout_for(table.bound, gaussian.BITS, words_for(count))
    batch = 64 * batch_words(layout, gaussian.BITS)
    parts = []
    for start in range(0, count, batch):
        cells = min(batch, count - start)
        bits = source((gaussian.BITS + 1, words_for(cells)))
        sign = bits[gaussian.BITS:]
        magnitude = search(trio, bits[:gaussian.BITS], table.thresholds, layout)
        weights = [multiplier << j for j in range(layout.digits)] + [-multiplier * ((1 << layout.digits) - 1)]
        parts.append(weighted_sum(trio, concatenate([magnitude ^ _repeat(sign, layout.digits), sign]), weights, cells, dtype))
    return join(parts)


def _repeat(plane: BitShare, times: int) -> BitShare:
    return BitShare(np.repeat(plane.own, times, axis=0), np.repeat(plane.next, times, axis=0))
