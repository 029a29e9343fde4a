"""The shared draws and arg max over these gates: bit for bit the references, from bits that only parties 0
and 1 draw."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bits import Bits
from tests.mpc_protocols.backends.additive.dealt_run import DEALER, Ran, run_three, share_ring
from tests.worlds import noise

pytestmark = pytest.mark.usefixtures("crypten")

MANY_BYTES = 1 << 24
Drawn = tuple[NDArray[np.uint32], list[NDArray[np.uint64]]]


def numbers(ran: Ran[Drawn], cells: int) -> tuple[list[int], list[list[int]]]:
    """The drawn integers, and per call the uniform number of every cell, from what parties 0 and 1 drew."""
    (mine, mine_drawn), (others, others_drawn), (dealers, dealers_drawn) = ran.results
    assert not dealers.any() and not any(bits.any() for bits in dealers_drawn)
    uniforms = [noise.uniforms(a ^ b, cells) for a, b in zip(mine_drawn, others_drawn, strict=True)]
    return (mine + others).view(np.int32).tolist(), uniforms


def drawn_by_three(
    draw: Callable[[Any, Any], Any], cells: int, latency_bytes: int = 1 << 16
) -> tuple[list[int], list[list[int]]]:
    """As `noise.Draws`."""

    def body(gates: AdditiveGates) -> Drawn:
        bits: list[Bits] = []
        made = draw(gates, noise.noted(gates, bits))
        return made, [each.parts[0] for each in bits]

    return numbers(run_three(body, latency_bytes), cells)


@pytest.mark.parametrize("cells", [1, 65])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_gumbel_noise_is_the_reference(cells: int, latency_bytes: int) -> None:
    noise.check_gumbels(partial(drawn_by_three, latency_bytes=latency_bytes), cells)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(10), Fraction(317, 10)])
def test_gaussian_noise_is_the_reference(sigma: Fraction) -> None:
    noise.check_gaussians(drawn_by_three, sigma)


def test_a_release_repeats_its_bits_and_nothing_else_does() -> None:
    def body(gates: AdditiveGates) -> list[NDArray[np.uint64]]:
        sources = [gates.release_bits(name) for name in (b"one", b"one", b"two")]
        return [source((2,)).parts[0] for source in (*sources, sources[0])]

    for first, again, other, later in run_three(body).results[:DEALER]:
        np.testing.assert_array_equal(first, again)
        assert not (first == other).any() and not (first == later).any()


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_the_largest_key_wins_and_the_first_of_equal_ones(
    count: int, dtype: type, latency_bytes: int
) -> None:
    top = (1 << 8 * np.dtype(dtype).itemsize - 2) - 1
    rows = np.random.default_rng().integers(-top, top, (4, count), endpoint=True)
    rows[1] = -5
    rows[2, count // 2 :] = top
    rows[3, -1] = top
    shares = share_ring(rows.astype(dtype))
    ran = run_three(lambda gates: argmax_rows(gates, shares[gates.link.me]), latency_bytes)  # type: ignore[type-var]
    for found in ran.results:
        assert found.tolist() == rows.argmax(axis=1).tolist()
