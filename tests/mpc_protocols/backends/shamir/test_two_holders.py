"""Bits times numbers of two holders: against plaintext, rounds and bytes to the unit, what each party sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.shamir.circuits import two_holders
from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import from_bits, to_bits, words_for
from tests.mpc_protocols.backends.shamir.mesh_run import held_parts, run_mesh, share_words

CELLS = 700
PARTIES = (3, 4)


def _parts(values: NDArray[Any], parties: int) -> list[NDArray[Any]]:
    """Fresh parts of the two holders, zeros at the others."""
    rng = np.random.default_rng()
    first = rng.integers(0, np.iinfo(values.dtype).max, values.shape, values.dtype, endpoint=True)
    return [first, values - first, *(np.zeros_like(values) for _ in range(parties - 2))]


@pytest.mark.parametrize("parties", PARTIES)
@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
@pytest.mark.parametrize("known", [(0, 1), (0,)])
def test_parts_of_products_add_up_to_them(parties: int, ring: Any, known: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    flags = rng.integers(0, 2, (3, CELLS))
    numbers = rng.integers(0, np.iinfo(ring).max, (3, CELLS), ring)
    bits = share_words(from_bits(flags), parties)
    parts = _parts(numbers, parties)
    if known == (0,):
        parts = [numbers, *(np.zeros_like(numbers) for _ in parts[1:])]
    ran = run_mesh(
        parties, lambda gates: two_holders.times(gates, bits[gates.mesh.me], parts[gates.mesh.me], known)
    )
    np.testing.assert_array_equal(sum(ran.results), flags * numbers)
    assert ran.rounds == 2
    opened, moved = 3 * 8 * words_for(CELLS), numbers.nbytes
    assert ran.sent[:2] == [opened + moved * (holder in known) for holder in (0, 1)]
    assert ran.sent[2:] == [2 * opened] * (parties - 2)


@pytest.mark.parametrize("parties", PARTIES)
@pytest.mark.parametrize("latency_bytes", [1, 1 << 40])
def test_distances_are_those_of_the_numbers(parties: int, latency_bytes: int) -> None:
    """Of the largest and the smallest differences that the bound allows, too; some candidates have no cell."""
    planes, lengths = 9, np.array([0, 300, 1, 0, 399])
    values = np.random.default_rng(5).integers(-255, 256, CELLS)
    values[:3] = 255, -255, 0
    parts = _parts(values.astype(np.uint32), parties)
    ran = run_mesh(
        parties,
        lambda gates: two_holders.distance_sums(gates, parts[gates.mesh.me], lengths, planes),
        latency_bytes,
    )
    found = np.sum(ran.results, axis=0, dtype=np.uint32)
    np.testing.assert_array_equal(
        found, [np.abs(of).sum() for of in np.split(values, np.cumsum(lengths)[:-1])]
    )
    assert all(not of.any() for of in ran.results[2:])
    assert latency_bytes == 1 or ran.rounds == 1 + 4 + 3  # a tree over 8 carries


@pytest.mark.parametrize("parties", PARTIES)
def test_weighted_sums_wider_numbers_and_openings(parties: int) -> None:
    rng = np.random.default_rng(7)
    flags, weights = rng.integers(0, 2, (5, CELLS)), (1, 2, 4, -7, 1 << 30)
    bits = share_words(from_bits(flags), parties)
    narrow = rng.integers(0, 1 << 32, CELLS, np.uint32)
    narrow[:3] = 0, 2**32 - 1, 1
    parts = _parts(narrow, parties)

    def body(gates: ShamirGates) -> list[NDArray[Any]]:
        me = gates.mesh.me
        sums = two_holders.weighted_sum(gates, bits[me], weights, CELLS, np.uint32)
        wide = two_holders.widened(gates, parts[me])
        return [two_holders.reveal(gates, of) for of in (sums, wide)]

    for sums, wide in run_mesh(parties, body).results:
        np.testing.assert_array_equal(sums.view(np.int32), np.array(weights) @ flags)
        np.testing.assert_array_equal(wide, narrow.astype(np.uint64))


@pytest.mark.parametrize("parties", [3, 5])
def test_numbers_that_the_holders_keep_are_compared(parties: int) -> None:
    rng = np.random.default_rng(11)
    left, right = (rng.integers(-1000, 1000, CELLS) for _ in range(2))
    right[:9] = left[:9]
    held = [held_parts(of.astype(np.uint32), parties) for of in (left, right)]

    def body(gates: ShamirGates) -> NDArray[Any]:
        mine, theirs = (of[gates.mesh.me] for of in held)
        return gates.reveal_bits(gates.less(mine.plus(np.full(CELLS, 3)), theirs.plus(np.full(CELLS, 3))))

    for found in run_mesh(parties, body).results:
        np.testing.assert_array_equal(to_bits(found, CELLS), left < right)


@pytest.mark.parametrize("me", [0, 1, 2, 3])
def test_what_a_party_sees_does_not_depend_on_what_is_multiplied(me: int) -> None:
    """Of a product that is handed on: all messages to a party, its masks, its parts and
    its share, two bits of each; 2^18 lanes. A false alarm has probability 1e-9 for each pair of inputs."""
    lanes = 1 << 18

    def patterns(bit: int, number: int) -> NDArray[np.int64]:
        bits = share_words(from_bits(np.full(lanes, bit)), 4)
        parts = _parts(np.full(lanes, number, np.uint32), 4)
        drawn: list[NDArray[Any]] = []

        def body(gates: ShamirGates) -> Bits:
            def noted(function: Callable[..., Any]) -> Callable[..., Any]:
                def run(*args: Any) -> Any:
                    found = function(*args)
                    if gates.mesh.me == me and found is not None:
                        drawn.append(found)
                    return found

                return run

            gates.mesh.between = noted(gates.mesh.between)  # type: ignore[method-assign]
            gates.opening = noted(gates.opening)  # type: ignore[method-assign]
            own = bits[gates.mesh.me]
            two_holders.handed(gates, two_holders.times(gates, own, parts[gates.mesh.me]))
            return own

        ran = run_mesh(4, body)
        frames = sorted(ran.frames, key=lambda frame: (frame.sender, frame.clock))
        seen: list[NDArray[Any]] = [
            np.frombuffer(of.payload, np.uint32 if len(of.payload) == 4 * lanes else np.uint64)
            for of in frames
            if of.receiver == me
        ]
        total = np.zeros(lanes, np.int64)
        for of in [*seen, *drawn, *([parts[me]] if me < 2 else []), bits[me].parts[0]]:
            total = total * 4 + (of & 3) if of.dtype == np.uint32 else total * 2 + to_bits(of, lanes)
        return total

    size = 1 << 14
    assert patterns(0, 1).max() < size
    reference = np.bincount(patterns(0, 1), minlength=size)
    for bit, number in ((1, 1), (0, 2), (1, 3)):
        both = np.stack([reference, np.bincount(patterns(bit, number), minlength=size)])
        assert stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue > 1e-9
