"""What a draw of noise on shares must be: the reference in the clear, from the random bits that were drawn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import to_bits
from mpc_protocols.engine.noise import sampling
from mpc_protocols.engine.noise.alias import alias_table
from mpc_protocols.mechanisms import gaussian, gumbel

Draws = Callable[[Callable[[Any, Any], Any], int], tuple[list[int], list[list[int]]]]
"""Runs a draw on a backend's gates and a source of bits, of so many cells: the integers in the clear, and of each call of
the source the uniform number of every cell."""


def noted(gates: Any, drawn: list[Bits]) -> Any:
    """The gates' source of a release's random bits, which also keeps what it draws."""
    source = gates.release_bits(b"release")

    def draw(shape: tuple[int, ...]) -> Bits:
        drawn.append(source(shape))
        return drawn[-1]

    return draw


def uniforms(words: NDArray[np.uint64], cells: int) -> list[int]:
    """Each cell's uniform number, from its bits."""
    columns = to_bits(words, cells, np.uint64).T
    return [sum(int(bit) << j for j, bit in enumerate(column)) for column in columns]


def gumbels(drawn: Sequence[int], dithers: Sequence[int]) -> list[int]:
    """The reference's Gumbel noise, in units of 1/32."""
    table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
    return [
        (gumbel.LOW + bisect_right(gumbel.THRESHOLDS, table.table_order(uniform)) << 5) + dither
        for uniform, dither in zip(drawn, dithers, strict=True)
    ]


def gaussians(thresholds: Sequence[int], drawn: Sequence[int]) -> list[int]:
    """The reference's Gaussian noise: a magnitude from the low bits, a sign from the one above them."""
    table = alias_table(thresholds, gaussian.BITS)
    magnitudes = [
        bisect_right(thresholds, table.table_order(uniform % (1 << gaussian.BITS))) for uniform in drawn
    ]
    return [-m if u >> gaussian.BITS else m for u, m in zip(drawn, magnitudes, strict=True)]


def check_gumbels(drawn: Draws, cells: int) -> None:
    """Scaled by 32, with a dither of five bits below."""
    found, (low, dithers) = drawn(
        lambda gates, source: sampling.gumbel_noise(gates, source, cells, 5, np.uint32), cells
    )
    assert found == gumbels(low, dithers)


def check_gaussians(drawn: Draws, sigma: Fraction) -> None:
    """At a sigma whose table has one part."""
    sampler, cells = gaussian.sampler(sigma**2), 130
    [(multiplier, half)] = sampler.parts
    assert multiplier == 1
    found, (low,) = drawn(
        lambda gates, source: sampling.gaussian_noise(gates, source, sampler, cells, np.uint32), cells
    )
    assert found == gaussians(half.thresholds, low)
