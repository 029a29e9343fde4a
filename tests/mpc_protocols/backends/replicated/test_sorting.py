"""Protocols on sorted lists of shared words: comparison, merging, groups of equals, secret shuffle; results,
costs, views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sorting import comparison, grouping, merging, shuffle
from mpc_protocols.backends.replicated.sorting.comparison import index_reversed
from mpc_protocols.engine.blank import Blank, blank
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Traffic
from tests.mpc_protocols.backends.replicated.trio_run import (
    blanks,
    deal_bits,
    parity,
    run_trio,
    without_a_key,
)

Array = NDArray[np.uint64]
ONES = np.uint64(2**64 - 1)
RNG = np.random.default_rng(11)


def words(count: int, top: int = 2**64 - 1) -> Array:
    return RNG.integers(0, top, count, dtype=np.uint64, endpoint=True)


def run_counted(body: Callable[..., Any], *shares: Sequence[BitShare]) -> tuple[list[Any], list[Traffic]]:
    """Results and traffic of body(trio, a share of each), which sends the same where shares have no content."""
    found, traffic = run_trio(lambda trio: body(trio, *(of[trio.me] for of in shares)))
    without = [blanks(of) for of in shares]
    results, counted = run_trio(
        lambda trio: body(trio, *(of[trio.me] for of in without)), network=BlankNetwork(3)
    )
    assert counted == traffic
    for result in results:
        for one in result if isinstance(result, list) else [result]:
            assert all(isinstance(part, Blank) or part.size <= 1 for part in one.parts)
    return found, traffic


def test_index_reversal() -> None:
    """Bit j goes to the reverse of j's six bits, and comes back."""
    for j in range(64):
        moved = int(index_reversed(np.array([1 << j], np.uint64))[0])
        assert moved == 1 << int(f"{j:06b}"[::-1], 2)
    x = words(500)
    np.testing.assert_array_equal(index_reversed(index_reversed(x)), x)


def extremes() -> tuple[Array, Array]:
    """All pairs of special values; neighbours; words that differ in one bit; random ones. 64-bit, a multiple
    of 64 pairs."""
    special = np.array([0, 1, 2, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)
    a, b = (x.reshape(-1) for x in np.meshgrid(special, special))
    x = words(200)
    near = np.concatenate(
        [x ^ np.uint64(1) << np.uint64(j % 64) for j, x in enumerate(words(128).reshape(-1, 1))]
    )
    left = np.concatenate([a, x, x, near, words(1000)])
    right = np.concatenate(
        [
            b,
            x,
            x + np.uint64(1),
            near ^ np.uint64(1) << np.arange(128, dtype=np.uint64) % np.uint64(64),
            words(1000),
        ]
    )
    count = len(left) // 64 * 64
    return left[-count:], right[-count:]


def test_greater_and_equal() -> None:
    """Against integers, all three components random; `ignored` bits do not matter; rounds and bytes."""
    a, b = extremes()
    x, y = deal_bits(index_reversed(a), RNG), deal_bits(index_reversed(b), RNG)
    shares, traffic = run_counted(lambda trio, a, b: comparison.greater(TrioBitGates(trio), a, b), x, y)
    np.testing.assert_array_equal(parity(shares), np.where(a > b, ONES, np.uint64(0)))
    assert traffic[0].rounds == 7 and traffic[0].bytes_sent / len(a) == pytest.approx(19.6, abs=0.05)
    for ignored in (0, 1, 1 << 63 | 7, 2**64 - 1):
        shares, traffic = run_counted(
            partial(
                lambda ignored, trio, a, b: comparison.equal(TrioBitGates(trio), a, b, ignored),
                ignored,
            ),
            x,
            y,
        )
        same = (index_reversed(a) ^ index_reversed(b)) & np.uint64(~ignored & 2**64 - 1) == 0
        np.testing.assert_array_equal(parity(shares), np.where(same, ONES, np.uint64(0)))
        assert traffic[0].rounds == 6 and traffic[0].bytes_sent / len(a) == pytest.approx(7.9, abs=0.05)


LENGTHS = [
    (0, 0),
    (0, 5),
    (5, 0),
    (1, 1),
    (3, 100),
    (64, 64),
    (65, 63),
    (130, 1),
    (300, 477),
    (1024, 1024),
    (7,),
    (7, 9, 11),
    (1000, 3, 500),
    (1, 2, 3, 4, 5),
    (0, 40, 0, 0),
    (100,) * 8,
    (1, 0, 300, 2, 64, 63, 65, 128),
]


@pytest.mark.parametrize("limit", [64, 128, 1 << 18])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_merge(lengths: tuple[int, ...], limit: int) -> None:
    """The sorted list of all, whatever the lengths and batches; many equal words; exact cost."""
    lists = [np.sort(words(n, 30 if n % 2 else 2**64 - 1)) for n in lengths]
    shares = [deal_bits(index_reversed(x), RNG) for x in lists]
    merged, _ = run_counted(lambda trio, *of: merging.merge(TrioBitGates(trio), of, limit), *shares)
    np.testing.assert_array_equal(index_reversed(parity(merged)), np.sort(np.concatenate(lists)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 11), st.integers(1, 500))
def test_pieces_are_all_comparators(blocks: int, power: int, limit: int) -> None:
    """Every pair (i, i + d) with bit d of i clear, once, at most `limit` in a piece; `ends` shows exactly
    those."""
    length, distance = blocks, 1 << power
    found = list(merging.pieces(length, distance, limit))
    assert all(0 < piece.count <= limit for piece in found)
    index = np.arange(2 * length, dtype=np.uint64).reshape(2, length)
    lower = [piece.ends(index)[0][0].reshape(-1) for piece in found]
    upper = [piece.ends(index)[1][0].reshape(-1) for piece in found]
    wanted = [i for i in range(length) if not i & distance and i + distance < length]
    assert sorted(np.concatenate([*lower, []]).tolist()) == wanted
    assert all((u - x == distance).all() for x, u in zip(lower, upper, strict=True))


def test_comparators_at_a_hundred_thousand() -> None:
    """(N / 2) log2 N comparators at most, and what they cost: `docs/design/psu.md` 2.2 has 99 MB."""
    n = 200_000
    count = sum(sum(piece.count for _, piece in batch) for _, batch in merging.schedule([n], merging.BATCH))
    assert 0.94 < count / (n / 2 * np.log2(n)) <= 1.0
    half = blank(n // 2, np.uint64)
    lists = [BitShare(half, half)] * 2
    _, traffic = run_trio(lambda trio: merging.merge(TrioBitGates(trio), lists), network=BlankNetwork(3))
    assert max(t.bytes_sent for t in traffic) < 48e6 and traffic[0].rounds == 8 * 18


@pytest.mark.parametrize(
    ("count", "longest"), [(0, 2), (1, 2), (2, 2), (300, 2), (301, 3), (500, 5), (1000, 8), (129, 200)]
)
@pytest.mark.parametrize("limit", [64, 1 << 17])
def test_groups(count: int, longest: int, limit: int) -> None:
    """Who repeats the one before but for a label, and the first one's name for a whole group."""
    sizes: list[int] = []
    while sum(sizes) < count:
        sizes.append(min(int(RNG.integers(1, longest, endpoint=True)), count - sum(sizes)))
    values = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << np.uint64(3) | words(count, 7)
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes) if count else np.zeros(0, np.int64)
    named = words(count)
    x, y = deal_bits(values, RNG), deal_bits(named, RNG)
    flags, _ = run_counted(lambda trio, of: grouping.repeats(TrioBitGates(trio), of, 7, limit), x)
    np.testing.assert_array_equal(parity(flags), np.where(first == np.arange(count), np.uint64(0), ONES))
    out, _ = run_counted(
        lambda trio, names, of: grouping.spread(TrioBitGates(trio), names, of, longest, limit), y, flags
    )
    np.testing.assert_array_equal(parity(out), named[first])


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 2, 65, 300])
def test_shuffle_keeps_rows_together(count: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "BLOCK", 64)
    columns = [words(count), words(count), words(count)]
    shares = [deal_bits(x, RNG) for x in columns]
    mixed, traffic = run_counted(lambda trio, *of: shuffle.shuffle(trio, of, first), *shares)
    out = [parity([m[i] for m in mixed]) for i in range(3)]
    assert Counter(zip(*(x.tolist() for x in out), strict=True)) == Counter(
        zip(*(x.tolist() for x in columns), strict=True)
    )
    assert count < 65 or not np.array_equal(out[0], columns[0])
    middle = (first + 1) % 3
    assert [t.bytes_sent for t in traffic] == [8 * 3 * count * (1 + (party == middle)) for party in range(3)]


def test_shuffle_is_uniform() -> None:
    """Order of four rows over 720 runs: chi-square on 24 cells below its 1 - 10^-6 quantile (71.3, 23
    degrees)."""
    rows = np.arange(4, dtype=np.uint64)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(720):
        shares = deal_bits(rows, RNG)
        mixed, _ = run_trio(lambda trio, s=shares: shuffle.shuffle(trio, [s[trio.me]])[0])  # type: ignore[misc]
        counts[tuple(parity(mixed).tolist())] += 1
    observed = np.array([*counts.values(), *[0] * (24 - len(counts))])
    assert ((observed - 30.0) ** 2 / 30).sum() < 71.3


def test_two_parties_do_not_make_the_order() -> None:
    """With two of the three pairs' keys fixed (all that one party holds) the order still changes with the
    third."""
    rows = np.arange(64, dtype=np.uint64)
    for party in range(3):
        orders = set()
        network = MemoryNetwork(3, session_id=bytes(32))
        for _ in range(4):
            shares = deal_bits(rows, RNG)
            mixed, _ = run_trio(
                lambda trio, s=shares: shuffle.shuffle(trio, [s[trio.me]])[0],  # type: ignore[misc]
                network=without_a_key(network, party),
            )
            orders.add(tuple(parity(mixed).tolist()))
        assert len(orders) == 4


def test_what_is_sent_is_uniform() -> None:
    """Constant lists, every message of merge, grouping and shuffle: bytes uniform by a chi-square with 255
    degrees of freedom below its 1 - 10^-6 quantile (378), per receiver."""
    lists = [deal_bits(np.zeros(512, np.uint64), RNG) for _ in range(2)]
    frames: list[Frame] = []

    def body(trio: Any) -> list[BitShare]:
        merged = merging.merge(TrioBitGates(trio), [x[trio.me] for x in lists])
        flags = grouping.repeats(TrioBitGates(trio), merged)
        return shuffle.shuffle(trio, [merged, grouping.spread(TrioBitGates(trio), merged, flags, 2)])

    run_trio(body, frames.append)
    for receiver in range(3):
        seen = np.frombuffer(b"".join(f.payload for f in frames if f.receiver == receiver), np.uint8)
        expected = len(seen) / 256
        assert len(seen) > 100_000
        assert ((np.bincount(seen, minlength=256) - expected) ** 2 / expected).sum() < 378
