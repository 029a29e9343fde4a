"""Sums, comparisons, noise, arg max and L1 distances of shared numbers: bit for bit the references, ripple
and tree."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.circuits.l1_distance import l1_sums
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.sharing.numbers import Addends, concatenate
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import from_planes, to_bits
from tests.mpc_protocols.backends.shamir.mesh_run import held_parts, run_mesh, share_numbers
from tests.trio import Trio
from tests.worlds import noise

MANY_BYTES = 1 << 40


def opened(gates: ShamirGates, x: Addends) -> NDArray[np.uint32]:
    return from_planes(gates.reveal_bits(gates.planes_of(x)), len(x))


@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
@pytest.mark.parametrize("parties", [3, 4, 5, 7, 9])
def test_addends_are_added_up(parties: int, latency_bytes: int) -> None:
    rng = np.random.default_rng()
    x, y, z = rng.integers(0, 2**32, (3, 70), dtype=np.uint32)
    x[:2], y[:2] = (2**32 - 1, 0), (1, 2**32 - 1)
    factors = rng.integers(0, 40, 70).tolist()
    xs, ys, zs = share_numbers(x, parties), share_numbers(y, parties), held_parts(z, parties)

    def body(gates: ShamirGates) -> list[NDArray[np.uint32]]:
        me = gates.mesh.me
        both = xs[me] + ys[me]
        every = [
            both,
            both + zs[me],
            (xs[me] + zs[me]).scaled(factors).plus(np.full(70, -5)),
            gates.scaled(xs[me], 11),
            concatenate([both[:30], xs[me][30:]]),
            both[np.arange(70) % 7].reshape(7, 10)[3],
        ]
        return [opened(gates, of) for of in every]

    scaled = ((x + z) * np.array(factors, np.uint32)) - np.uint32(5)
    wanted = [x + y, x + y + z, scaled, x * np.uint32(11), np.concatenate([(x + y)[:30], x[30:]])]
    wanted.append((x + y)[np.arange(70) % 7].reshape(7, 10)[3])
    for found in run_mesh(parties, body, latency_bytes).results:
        for mine, value in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, value)


@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_comparisons(dtype: type, latency_bytes: int) -> None:
    top = (1 << 8 * np.dtype(dtype).itemsize - 2) - 1
    left = np.array([0, 0, 1, -1, top, -top, 5, top, -top] * 9)
    right = np.array([0, 1, 0, 0, -top, top, 5, top, -top] * 9)
    ls, rs = share_numbers(left.astype(dtype), 5), share_numbers(right.astype(dtype), 5)

    def body(gates: ShamirGates) -> list[NDArray[Any]]:
        mine, theirs = ls[gates.mesh.me], rs[gates.mesh.me]
        several = gates.less(mine + mine.plus(np.full(81, 3)), theirs + theirs)
        return [to_bits(gates.reveal_bits(of), 81) for of in (gates.less(mine, theirs), several)]

    for found, several in run_mesh(5, body, latency_bytes).results:
        assert found.tolist() == (left < right).tolist()
        near = np.abs(left) < top  # twice the others does not fit
        assert several[near].tolist() == (2 * left + 3 < 2 * right)[near].tolist()


def test_weights_that_meet_at_a_position_make_several_terms() -> None:
    bits = np.random.default_rng().integers(0, 2, (4, 40), dtype=np.uint32)
    weights = [3, -5, 1 << 30, 3]
    shares = [share_numbers(row, 5) for row in bits]

    def body(gates: ShamirGates) -> NDArray[np.uint32]:
        planes = [shares[row][gates.mesh.me].planes(0)[0] for row in range(4)]
        stacked = Bits(*(np.stack(parts) for parts in zip(*(of.parts for of in planes), strict=True)))
        return opened(gates, gates.weighted_sum(stacked, weights, 40, np.uint32))

    wanted = (np.array(weights) @ bits.astype(np.int64)).astype(np.uint32)
    for found in run_mesh(5, body).results:
        np.testing.assert_array_equal(found, wanted)


def drawn_by(
    parties: int, draw: Callable[[Any, Any], Any], cells: int, latency_bytes: int = 1 << 16
) -> tuple[list[int], list[list[int]]]:
    """As `noise.Draws`, of so many parties."""

    def body(gates: ShamirGates) -> tuple[NDArray[np.uint32], list[NDArray[np.uint64]]]:
        bits: list[Bits] = []
        made = draw(gates, noise.noted(gates, bits))
        return opened(gates, made), [gates.reveal_bits(each) for each in bits]

    integers, calls = run_mesh(parties, body, latency_bytes).results[0]
    return integers.view(np.int32).tolist(), [noise.uniforms(words, cells) for words in calls]


@pytest.mark.parametrize("parties", [3, 5, 7, 9])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_gumbel_noise_is_the_reference(parties: int, latency_bytes: int) -> None:
    noise.check_gumbels(partial(drawn_by, parties, latency_bytes=latency_bytes), 65)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(10), Fraction(317, 10)])
def test_gaussian_noise_is_the_reference(sigma: Fraction) -> None:
    noise.check_gaussians(partial(drawn_by, 5), sigma)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
def test_the_largest_key_wins_and_the_first_of_equal_ones(count: int, latency_bytes: int) -> None:
    top = (1 << 30) - 1
    rows = np.random.default_rng().integers(-top, top, (4, count), endpoint=True)
    rows[1] = -5
    rows[2, count // 2 :] = top
    rows[3, -1] = top
    shares = share_numbers(rows.astype(np.uint32).reshape(-1), 5)
    ran = run_mesh(
        5, lambda gates: argmax_rows(gates, shares[gates.mesh.me].reshape(4, count)), latency_bytes
    )
    for found in ran.results:
        assert found.tolist() == rows.argmax(axis=1).tolist()


@pytest.mark.parametrize("parties", [3, 5, 7, 8, 9])
@pytest.mark.parametrize("latency_bytes", [1, MANY_BYTES])
@pytest.mark.parametrize("planes", [2, 9, 18, 32])
def test_l1_distances(parties: int, planes: int, latency_bytes: int) -> None:
    lengths = np.array([1, 0, 63, 64, 65, 1000, 5])
    top = min((1 << planes - 1) - 1, (1 << 32) // 1001)
    cells = np.random.default_rng().integers(-top, top, int(lengths.sum()), endpoint=True)
    cells[1:64], cells[64:128] = top, -top
    cells[-5:] = [0, 1, -1, top, -top]
    parts = held_parts(cells.astype(np.uint32), parties)

    def body(gates: ShamirGates) -> NDArray[np.uint32]:
        held = parts[gates.mesh.me].held
        assert held is not None
        first, *others = l1_sums(gates, held, lengths, planes)
        for other in others:
            first = first + other
        return opened(gates, first)

    wanted = [int(np.abs(piece).sum()) for piece in np.split(cells, np.cumsum(lengths)[:-1])]
    for found in run_mesh(parties, body, latency_bytes).results:
        assert found.tolist() == wanted


@pytest.mark.parametrize("count", [1, 64, 65, 300])
def test_candidates_of_one_cell(count: int) -> None:
    cells = np.random.default_rng().integers(-100, 100, count)
    parts = held_parts(cells.astype(np.uint32), 5)

    def body(gates: ShamirGates) -> NDArray[np.uint32]:
        held = parts[gates.mesh.me].held
        assert held is not None
        a, b, c, d = l1_sums(gates, held, np.ones(count, np.int64), 8)
        return opened(gates, a + b + c + d)

    for found in run_mesh(5, body).results:
        assert found.tolist() == np.abs(cells).tolist()


def job(wire: Any, cells: list[int], parts: list[NDArray[np.uint32]]) -> tuple[list[int], list[int]]:
    """Sums of absolute values of two candidates, here and by MPyC's secure integers, over one session's keys."""
    gates = ShamirGates(Mesh(wire))
    a, b, c, d = l1_sums(gates, parts[wire.me], np.array([4, len(cells) - 4]), 18)
    ours = opened(gates, a + b + c + d).tolist()
    mpc = wire.mpyc()
    secure = mpc.SecInt(32)
    shared = mpc.input([secure(cell) for cell in cells], senders=0)
    sums = [mpc.sum([abs(x) for x in part]) for part in (shared[:4], shared[4:])]
    return ours, [int(x) for x in mpc.run(mpc.output(sums))]


def test_mpyc_finds_the_same_distances(five: Trio) -> None:
    cells = [0, 1, -1, 131_071, -131_071, 77, -4000]
    parts = [of.held for of in held_parts(np.array(cells).astype(np.uint32), 5)]
    for ours, theirs in five.run(job, cells, parts):
        assert ours == theirs == [131_073, 135_148]
