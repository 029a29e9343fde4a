"""An arg max by fours: against the ideal, its openings, and how many levels pay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.gates import TrioGates, argmax
from mpc_protocols.backends.replicated.scores.tournament import (
    COMPUTED,
    WIDTH,
    argmax_by_fours,
    tournament,
)
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.argmax import PAIRS
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame
from tests.mpc_protocols.backends.replicated.test_masked_keys import (
    PLACES,
    deal_parts,
    placed,
    without_content,
)
from tests.mpc_protocols.backends.replicated.test_messages import assert_uniform
from tests.mpc_protocols.backends.replicated.trio_run import run_trio

KEYS = st.lists(
    st.sampled_from([-(2**30), -1, 0, 1, 2**30 - 1]) | st.integers(-(2**30), 2**30 - 1),
    min_size=2,
    max_size=150,
)


@settings(max_examples=60, deadline=None)
@given(
    keys=KEYS,
    levels=st.integers(1, 5),
    place=st.sampled_from(list(PLACES)),
    wide=st.booleans(),
    seed=st.integers(0, 9),
)
def test_the_lowest_position_of_the_largest_key_is_opened(
    keys: list[int], levels: int, place: str, wide: bool, seed: int
) -> None:
    """Against the ideal: ties within a four and across them, keys that fill up no four, more levels than keys need; a dry
    run counts the same."""
    values = np.array(keys).astype(np.uint64 if wide else np.uint32)
    parts = deal_parts(values, np.random.default_rng(seed))

    def body(gates: TrioGates, of: Parts) -> int:
        return argmax_by_fours(gates, of, levels)

    results, traffic = placed(body, parts, place)
    assert results == [int(np.argmax(keys))] * 3

    def counted(gates: TrioGates, of: Parts) -> int:
        """In a dry run somebody else says who wins."""
        opened = gates.zero_rows

        def first(shape: tuple[int, int], rows: Iterable[tuple[slice, BitShare]]) -> NDArray[np.bool_]:
            opened(shape, rows)
            return np.eye(*shape, dtype=np.bool_)

        gates.zero_rows = first  # type: ignore[method-assign]
        return body(gates, of)

    assert traffic == placed(counted, without_content(parts), place, network=BlankNetwork(3))[1]


@pytest.mark.parametrize("element", [4, 8])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("count", [1500, 6000])
def test_the_cost_of_a_tournament_is_what_it_takes(count: int, place: str, element: int) -> None:
    """Rounds as told; bytes but for the words that pad planes and the openings."""
    latency_bytes = PLACES[place]
    cost, levels = tournament(count, element, latency_bytes)
    parts = deal_parts(np.arange(count, dtype=f"u{element}"), np.random.default_rng(0))
    results, traffic = placed(argmax, parts, place)
    assert levels and results == [count - 1] * 3
    compared = [-(-count // WIDTH**level) for level in range(levels + 1)]
    comparisons = sum(fours * WIDTH * (WIDTH - 1) // 2 for fours in compared[1:])
    comparisons += compared[-1] * (compared[-1] - 1) // 2
    masked = 2 * element * (sum(compared[:-1]) + 3 * compared[-1]) // 3
    opened = 32 * (compared[-1] + WIDTH**levels)
    for of in traffic:
        taken = of.rounds * latency_bytes + of.bytes_sent + COMPUTED * comparisons
        told = cost + latency_bytes + masked + opened
        assert abs(taken - told) < 8000 * (levels + 1)  # words that pad planes


def test_levels_pay_where_bytes_outweigh_rounds() -> None:
    assert [tournament(count, 4, LATENCY_BYTES).levels for count in (2, 240, 300, 1000, 20_000)] == [
        0,
        0,
        1,
        2,
        4,
    ]
    assert [tournament(count, 4, 1 << 40).levels for count in (1448, 1449)] == [0, 1]  # one batch of pairs
    assert 1448 * 1447 // 2 <= PAIRS < 1449 * 1448 // 2
    assert tournament(20_000, 4, LATENCY_BYTES).cost < 2_500_000  # groups of 64: 7.8 million


def test_below_the_largest_only_its_key_opens() -> None:
    """Of the 16 keys below it one word is 0; the others differ, and half of their bits are set (5 sigma)."""
    words = []
    parts = deal_parts(np.arange(320, dtype=np.uint32) // 2, np.random.default_rng(1))
    for _ in range(8):
        frames: list[Frame] = []
        results, _ = run_trio(
            lambda trio: argmax_by_fours(TrioGates(trio), parts[trio.me], 2), tap=frames.append
        )
        assert results == [318] * 3
        sent = [np.frombuffer(f.payload, np.uint64) for f in frames if len(f.payload) == 16 * WIDTH**2][-6:]
        opened = np.bitwise_xor.reduce(list({part.tobytes(): part for part in sent}.values())).reshape(-1, 2)
        assert np.flatnonzero(~opened.any(axis=1)).tolist() == [318 % WIDTH**2]
        words += [word for row in opened for word in row.tolist() if word]
    assert len(set(words)) == len(words) == 8 * 2 * (WIDTH**2 - 1)
    bits = sum(word.bit_count() for word in words)
    assert abs(bits - 32 * len(words)) < 5 * np.sqrt(16 * len(words))


@pytest.mark.parametrize(("count", "levels"), [(5, 1), (37, 2), (150, 3)])
def test_a_dry_run_is_told_the_index_in_two_digits(count: int, levels: int) -> None:
    """As `selection_openings` has it, where fours are filled up, too."""
    parts = without_content(deal_parts(np.zeros(count, np.uint32), np.random.default_rng(0)))
    for index in {0, 1, 3, 4, count // 2, count - 2, count - 1}:

        def told(trio: Trio, index: int = index) -> int:
            gates, shown = TrioGates(trio), list(divmod(index, WIDTH**levels))

            def winning(shape: tuple[int, int], rows: Iterable[tuple[slice, BitShare]]) -> NDArray[np.bool_]:
                return np.eye(1, shape[1], shown.pop(0), dtype=np.bool_)

            gates.zero_rows = winning  # type: ignore[method-assign]
            return argmax_by_fours(gates, parts[trio.me], levels)

        assert run_trio(told, network=BlankNetwork(3))[0] == [index] * 3


@pytest.mark.parametrize("value", [0, 1, 2**31 - 1])
def test_messages_are_uniform(value: int) -> None:
    """Keys of one value, all of it in one party's part."""
    own = [np.full(20_000, value if me == 1 else 0, np.uint32) for me in range(3)]
    frames: list[Frame] = []
    results, _ = placed(argmax, [Parts(of) for of in own], "near", tap=frames.append)
    assert results == [0] * 3
    assert_uniform([frame for frame in frames if len(frame.payload) > 16 * WIDTH**4])


def test_keys_that_open_to_no_candidate_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer whose losses are wrong: nobody below the largest has lost nothing."""
    parts = deal_parts(np.arange(40, dtype=np.uint32), np.random.default_rng(1))
    opened = TrioGates.zero_rows

    def no_winner(
        gates: TrioGates, shape: tuple[int, int], rows: Iterable[tuple[slice, BitShare]]
    ) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = opened(gates, shape, rows)
        return found & (shape != (1, WIDTH))

    monkeypatch.setattr(TrioGates, "zero_rows", no_winner)

    def body(trio: Trio) -> None:
        with pytest.raises(ProtocolAborted, match="opened to no candidate"):
            argmax_by_fours(TrioGates(trio), parts[trio.me], 1)

    run_trio(body)
