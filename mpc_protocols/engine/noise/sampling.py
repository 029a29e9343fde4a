"""Shared noise that nobody knows: the dithered Gumbel noise of a selection and the discrete Gaussian of a
measurement.

Both draw from a public table with shared uniform bits, which are free (`alias`), followed by one weighted sum
of bits (`docs/design/mechanisms.md` 1.5, 3.1, 3.3). Given U, they equal `mechanisms.selection.reference` and
`mechanisms.gaussian.reference` on `AliasTable.table_order(U)`, bit for bit: the same integer distribution,
with the uniform numbers in another order.

    Gumbel    2^a K + V: 80 bits U and a bits V per candidate; 13 rounds, 401 ANDs a candidate (tree); the dither is
              free; 2 rounds to the ring
    Gaussian  x = (1 - 2s) k = sum_j 2^j (k_j ^ s) - (2^t - 1) s: per part of the sampler 64 bits U and a sign s per cell.
              sigma 10: 143 ANDs (ripple) or 249 (tree, 11 rounds); sigma 100: 180 or 280; 2 rounds to the ring

Ripple or tree: `adders.adder_for`, from the table's size, the number of cells and the worth of a round.

The random bits are bound to the release (`BitGates.release_bits`): the same release, inputs and input sharing
give the same noise, anything else gives fresh noise. Privacy does not depend on the ring: adding the noise
wraps like any other sum.

Threat model: the backend's; nobody whom it tolerates as corrupted knows a bit of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock

import numpy as np

from mpc_protocols.engine.bitwise.adders import Adder, adder_for
from mpc_protocols.engine.bitwise.bits import B, concatenate
from mpc_protocols.engine.bitwise.bitslice import UInt, words_for
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.interface import BitSource, Gates, N
from mpc_protocols.engine.noise.alias import AliasTable, alias_table, draw, draw_runs, index_bits_of
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import HalfTable, Sampler

_TABLES = Lock()
"""Parties of one process make a table once."""
NOISE_BATCH = 1 << 18
"""Cells that are drawn together: bounds the memory at about 240 bytes a cell of one batch, or 710 where 64-bit
keys are products of two parties' parts."""


def noise_adder(table: AliasTable, count: int, latency_bytes: int) -> Adder:
    """The comparison of the draws of so many cells."""
    return adder_for(table.rest_bits, words_for(count), latency_bytes, -(-count // NOISE_BATCH))


def gumbel_adder(count: int, latency_bytes: int) -> Adder:
    """The form of `gumbel_noise`."""
    return noise_adder(gumbel_table(), count, latency_bytes)


@cache
def gumbel_table() -> AliasTable:
    """The columns of the Gumbel table: asked for in every selection, and its thousands of thresholds are hashed once."""
    return alias_table(gumbel.THRESHOLDS, gumbel.BITS)


def gaussian_adder(sampler: Sampler, count: int, latency_bytes: int) -> Adder:
    """The form of `gaussian_noise`: that of the sampler's first table."""
    return noise_adder(alias_table(sampler.parts[0][1].thresholds, gaussian.BITS), count, latency_bytes)


def gumbel_noise(gates: Gates[B, N], source: BitSource, count: int, a: int, ring: UInt) -> N:
    """2^a K + V for `count` candidates, of one selection or of many: shape (count,), modulo the ring."""
    return dithered(gates, source, gumbel_values(gates, source, count), count, a, ring)


@by_shape(lambda gates, source, count: count)
def gumbel_values(gates: Gates[B, N], source: BitSource, count: int) -> list[B]:
    """Bits of K for so many candidates, batch by batch, (index bits, words) each: what takes the rounds, and
    depends on no selection's grid."""
    table = gumbel_table()
    adder = noise_adder(table, count, gates.latency_bytes)
    return [draw(gates, source((gumbel.BITS, words_for(cells))), table, adder) for cells in batches(count)]


@by_shape(lambda gates, source, values, count, a, ring: (count, a, ring))
def dithered(gates: Gates[B, N], source: BitSource, values: Sequence[B], count: int, a: int, ring: UInt) -> N:
    """2^a K + V of the bits of `count` values. 2 rounds, or what a weighted sum takes."""
    index_bits = gumbel_table().index_bits
    weights = [1 << a + j for j in range(index_bits)] + [1 << j for j in range(a)]
    parts = []
    for bits, cells in zip(values, batches(count), strict=True):
        dither = source((a, words_for(cells)))
        parts.append(gates.weighted_sum(concatenate([bits, dither]), weights, cells, ring))
    return gates.add_public(gates.concatenate(parts), np.full(count, gumbel.LOW << a, np.int64))


@by_shape(lambda gates, source, sampler, count, ring: (sampler.digest, count, ring))
def gaussian_noise(gates: Gates[B, N], source: BitSource, sampler: Sampler, count: int, ring: UInt) -> N:
    """Independent draws of the sampler: shape (count,)."""
    noise = _half_table_noise(gates, source, *sampler.parts[0], count, ring)
    for multiplier, table in sampler.parts[1:]:
        noise = noise + _half_table_noise(gates, source, multiplier, table, count, ring)
    return noise


@by_shape(lambda gates, source, samplers, ring: (tuple((of.digest, count) for of, count in samplers), ring))
def gaussian_noises(
    gates: Gates[B, N], source: BitSource, samplers: Sequence[tuple[Sampler, int]], ring: UInt
) -> N:
    """Independent draws of several samplers, each so many, one after the other; the rounds are those of the
    widest.

    Tables are brought to as many columns as the largest has, which changes no distribution. What has more
    than NOISE_BATCH cells is drawn for itself.
    """
    if len(samplers) == 1 or sum(count for _, count in samplers) > NOISE_BATCH:
        return gates.concatenate([gaussian_noise(gates, source, of, count, ring) for of, count in samplers])
    noise = None
    for part in range(max(len(of.parts) for of, _ in samplers)):
        run = [(*of.parts[part], count) for of, count in samplers if part < len(of.parts)]
        drawn = _half_tables_noise(gates, source, run, ring)
        if noise is None:
            noise = drawn
        else:  # only the wide ones have a second part
            starts = np.cumsum([0, *(count for _, count in samplers)])
            pieces, taken = [], 0
            for (of, count), start in zip(samplers, starts, strict=False):
                piece = noise[start : start + count]
                if part < len(of.parts):
                    piece = piece + drawn[taken : taken + count]
                    taken += count
                pieces.append(piece)
            noise = gates.concatenate(pieces)
    assert noise is not None
    return noise


def joint_tables(halves: Sequence[HalfTable]) -> list[AliasTable]:
    """The alias tables of several half tables that are drawn from together."""
    index_bits = max(index_bits_of(half.thresholds) for half in halves)
    with _TABLES:
        return [alias_table(half.thresholds, gaussian.BITS, index_bits) for half in halves]


def _half_tables_noise(
    gates: Gates[B, N], source: BitSource, runs: Sequence[tuple[int, HalfTable, int]], ring: UInt
) -> N:
    """runs: multiplier, half table and number of each run of draws."""
    tables, lengths = joint_tables([half for _, half, _ in runs]), [words_for(count) for _, _, count in runs]
    digits, words = tables[0].index_bits, sum(lengths)
    adder = noise_adder(tables[0], 64 * words, gates.latency_bytes)
    bits = source((gaussian.BITS + 1, words))
    sign = bits[gaussian.BITS :]
    magnitude = draw_runs(gates, bits[: gaussian.BITS], list(zip(tables, lengths, strict=True)), adder)
    weights = [1 << j for j in range(digits)] + [1 - (1 << digits)]
    drawn = gates.weighted_sum(concatenate([magnitude ^ sign, sign]), weights, 64 * words, ring)
    lanes = np.arange(64 * words).reshape(
        32, 2 * words
    )  # the cells of each half word, bit by bit (`bitslice`)
    pieces, first = [], 0
    for (multiplier, _, count), length in zip(runs, lengths, strict=True):
        cells = lanes[:, 2 * first : 2 * (first + length)].reshape(-1)[:count]
        pieces.append(gates.scaled(drawn[cells], multiplier))
        first += length
    return gates.concatenate(pieces)


def batches(count: int) -> list[int]:
    """Cells of each batch."""
    return [min(NOISE_BATCH, count - start) for start in range(0, count, NOISE_BATCH)]


def _half_table_noise(
    gates: Gates[B, N], source: BitSource, multiplier: int, half: HalfTable, count: int, ring: UInt
) -> N:
    table = alias_table(half.thresholds, gaussian.BITS)
    adder = noise_adder(table, count, gates.latency_bytes)
    digits = table.index_bits
    weights = [multiplier << j for j in range(digits)] + [-multiplier * ((1 << digits) - 1)]
    parts = []
    for cells in batches(count):
        bits = source((gaussian.BITS + 1, words_for(cells)))
        sign = bits[gaussian.BITS :]
        magnitude = draw(gates, bits[: gaussian.BITS], table, adder)
        parts.append(gates.weighted_sum(concatenate([magnitude ^ sign, sign]), weights, cells, ring))
    return gates.concatenate(parts)
