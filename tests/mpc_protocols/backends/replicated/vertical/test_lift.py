"""Sums modulo 2^16 become those modulo 2^32: every count that may occur, whatever the parts; by messages that are uniform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedNumbers
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical import lift
from mpc_protocols.backends.replicated.vertical.lift import LIFTED_ROWS, lifted
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.in_memory.memory_wire import Frame
from tests.mpc_protocols.backends.replicated.test_messages import assert_uniform
from tests.mpc_protocols.backends.replicated.trio_run import run_trio

RNG = np.random.default_rng(5)


def parts_of(counts: NDArray[np.int64], known: NDArray[np.int64]) -> list[Elements]:
    """Parts of counts: what party 0 has, zeros, and the rest."""
    return [
        known.astype(np.uint16),
        np.zeros(len(counts), np.uint16),
        (counts - known).astype(np.uint16),
    ]


def opened(parts: list[Elements], tap: list[Frame] | None = None) -> Elements:
    """What the lifted parts add up to."""
    wide, _ = run_trio(lambda trio: lifted(trio, Parts(parts[trio.me])), None if tap is None else tap.append)
    assert all(part.own.dtype == np.uint32 for part in wide)
    total: Elements = wide[0].own + wide[1].own + wide[2].own
    return total


def test_every_count() -> None:
    """0 to LIFTED_ROWS."""
    counts = np.arange(LIFTED_ROWS + 1)
    known = RNG.integers(0, 1 << 16, len(counts))
    np.testing.assert_array_equal(opened(parts_of(counts, known)), counts)


@pytest.mark.parametrize("count", [0, 1, 8191, 8192, 32_767, 32_768, LIFTED_ROWS - 1, LIFTED_ROWS])
def test_every_addend(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a count, with every value of a, dealer by dealer: the masks are zeros here, so that a is the dealer's part."""
    known = np.arange(1 << 16)

    class Bare(MaskedNumbers):
        """Numbers opened without masks."""

        def __init__(self, trio: Trio, parts: Sequence[Elements]) -> None:
            super().__init__(trio, parts)
            self.addends[trio.me] = parts[trio.me]
            self._to_right, self._to_left = parts[trio.left], parts[trio.right]

    monkeypatch.setattr(lift, "MaskedNumbers", Bare)
    of_one = parts_of(np.full(len(known), count), known)
    for turn in range(3):
        parts = [of_one[(party - turn) % 3] for party in range(3)]
        np.testing.assert_array_equal(opened(parts), count)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 64])
def test_sizes(size: int) -> None:
    counts = RNG.integers(0, LIFTED_ROWS + 1, size)
    np.testing.assert_array_equal(opened(parts_of(counts, RNG.integers(0, 1 << 16, size))), counts)


def test_one_count_more_is_one_too_many() -> None:
    """LIFTED_ROWS is the most that every addend allows."""
    every = np.arange(1 << 16)
    assert (opened(parts_of(np.full(1 << 16, LIFTED_ROWS + 1), every)) != LIFTED_ROWS + 1).any()


@pytest.mark.parametrize("count", [0, 1, LIFTED_ROWS])
@pytest.mark.parametrize("holder", [0, 1, 2])
def test_messages_are_uniform(count: int, holder: int) -> None:
    """Whoever has all of every count; one round, 6 bytes a count and party."""
    parts = [np.full(12_000, count if party == holder else 0, np.uint16) for party in range(3)]
    frames: list[Frame] = []
    opened(parts, frames)
    assert_uniform(frames)
    assert {frame.clock for frame in frames} == {1}
    for party in range(3):
        assert sum(len(frame.payload) for frame in frames if frame.sender == party) == 6 * 12_000
