"""Shared noise that nobody knows: the dithered Gumbel noise of a selection and the discrete Gaussian of a measurement.

Both draw from a public table with shared uniform bits, which are free (`alias`), followed by one weighted sum of bits
(`mechanisms.md` 1.5, 3.1, 3.3). Given U, they equal `mechanisms.selection.reference` and `mechanisms.gaussian.reference` on
`AliasTable.table_order(U)`, bit for bit: the same integer law, with the uniform numbers in another order.

    Gumbel    2^a K + V: 80 bits U and a bits V per candidate; 13 rounds, 401 ANDs a candidate (tree); the dither is
              free; 2 rounds to the ring
    Gaussian  x = (1 - 2s) k = sum_j 2^j (k_j ^ s) - (2^t - 1) s: per part of the sampler 64 bits U and a sign s per cell.
              sigma 10: 143 ANDs (ripple) or 249 (tree, 11 rounds); sigma 100: 180 or 280; 2 rounds to the ring

Ripple or tree: `sign.adder_for`, from the table's size, the number of cells and the worth of a round.

The random bits come from streams bound to the release (`release_bits`): the same release, inputs and input sharing give the
same noise, anything else gives fresh noise. Privacy does not depend on the ring: adding the noise wraps like any other sum.

Threat model: `trio`, semi-honest, one corrupted party; it knows two of three components of every bit, which is nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpc_protocols.engine.alias import AliasTable, alias_table, draw
from mpc_protocols.engine.bitslice import words_for
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import HalfTable, Sampler
from mpc_protocols.replicated.sharing.boolean import BitShare, concatenate, random_bits
from mpc_protocols.replicated.sharing.conversion import weighted_sum
from mpc_protocols.replicated.sharing.ring import RingShare, add_public
from mpc_protocols.replicated.sharing.ring import concatenate as join
from mpc_protocols.replicated.sharing.sign import Adder, adder_for
from mpc_protocols.replicated.sharing.trio import Trio, UInt

BitSource = Callable[[tuple[int, ...]], BitShare]
"""Fresh shared uniform words of a shape, in the order of the calls."""


BATCH = 1 << 18
"""Cells that are drawn together: bounds the memory at about 200 bytes a cell of one batch."""


def noise_adder(table: AliasTable, count: int, round_bytes: int) -> Adder:
    """The comparison of the draws of so many cells."""
    return adder_for(table.rest_bits, words_for(count), round_bytes, -(-count // BATCH))


def gumbel_adder(count: int, round_bytes: int) -> Adder:
    """The form of `gumbel_noise`."""
    return noise_adder(alias_table(gumbel.THRESHOLDS, gumbel.BITS), count, round_bytes)


def gaussian_adder(sampler: Sampler, count: int, round_bytes: int) -> Adder:
    """The form of `gaussian_noise`: that of the sampler's first table."""
    return noise_adder(alias_table(sampler.parts[0][1].thresholds, gaussian.BITS), count, round_bytes)


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
    """2^a K + V for `count` candidates, of one selection or of many: a share of shape (count,) modulo 2^K of the dtype."""
    table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
    adder = noise_adder(table, count, trio.round_bytes)
    weights = [1 << a + j for j in range(table.index_bits)] + [1 << j for j in range(a)]
    parts = []
    for cells in batches(count):
        uniform = source((gumbel.BITS, words_for(cells)))
        dither = source((a, words_for(cells)))
        parts.append(
            weighted_sum(
                trio, concatenate([draw(trio, uniform, table, adder), dither]), weights, cells, dtype
            )
        )
    return add_public(trio, join(parts), np.full(count, gumbel.LOW << a, np.int64))


def gaussian_noise(trio: Trio, source: BitSource, sampler: Sampler, count: int, dtype: UInt) -> RingShare:
    """Independent draws of the sampler: a share of shape (count,)."""
    noise = _half_table_noise(trio, source, *sampler.parts[0], count, dtype)
    for multiplier, table in sampler.parts[1:]:
        noise = noise + _half_table_noise(trio, source, multiplier, table, count, dtype)
    return noise


def batches(count: int) -> list[int]:
    """Cells of each batch."""
    return [min(BATCH, count - start) for start in range(0, count, BATCH)]


def _half_table_noise(
    trio: Trio, source: BitSource, multiplier: int, half: HalfTable, count: int, dtype: UInt
) -> RingShare:
    table = alias_table(half.thresholds, gaussian.BITS)
    adder = noise_adder(table, count, trio.round_bytes)
    digits = table.index_bits
    weights = [multiplier << j for j in range(digits)] + [-multiplier * ((1 << digits) - 1)]
    parts = []
    for cells in batches(count):
        bits = source((gaussian.BITS + 1, words_for(cells)))
        sign = bits[gaussian.BITS :]
        magnitude = draw(trio, bits[: gaussian.BITS], table, adder)
        signed = BitShare(magnitude.own ^ sign.own, magnitude.next ^ sign.next)
        parts.append(weighted_sum(trio, concatenate([signed, sign]), weights, cells, dtype))
    return join(parts)
