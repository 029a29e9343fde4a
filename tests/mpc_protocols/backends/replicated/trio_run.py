"""Helpers of the replicated tests: deal random sharings, run three parties in threads, put components
together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores import bit_cache
from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.scores.l1_distance import DealerCells, add_l1_sums, addend_of
from mpc_protocols.backends.replicated.scores.masked_sign import Form, share_bits
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare, reshare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import from_bits, to_bits
from mpc_protocols.engine.blank import blank
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.public.answers import Answers, CellRange, DealerLayout, layouts
from mpc_protocols.wire import Traffic, Wire

T = TypeVar("T")
Share = RingShare | BitShare


def deal_ring(values: NDArray[Any], rng: np.random.Generator) -> list[RingShare]:
    """The three parties' shares of unsigned `values`, all three components random."""
    top = int(np.iinfo(values.dtype).max)
    first = rng.integers(0, top, values.shape, dtype=values.dtype, endpoint=True)
    second = rng.integers(0, top, values.shape, dtype=values.dtype, endpoint=True)
    components = [first, second, values - first - second]
    return [RingShare(components[i], components[(i + 1) % 3]) for i in range(3)]


def deal_bits(words: NDArray[np.uint64], rng: np.random.Generator) -> list[BitShare]:
    """The three parties' XOR shares of words, all three components random."""
    first, second = rng.integers(0, 2**64 - 1, (2, *words.shape), dtype=np.uint64, endpoint=True)
    components = [first, second, words ^ first ^ second]
    return [BitShare(components[i], components[(i + 1) % 3]) for i in range(3)]


def deal_flags(bits: NDArray[Any], rng: np.random.Generator) -> list[BitShare]:
    """Shares of 0/1 values (..., n) as planes."""
    return deal_bits(from_bits(bits), rng)


def blanks(shares: Sequence[Any]) -> list[Any]:
    """Shares of the same shape and type, without content."""
    return [type(of)(*(blank(part.shape, part.dtype) for part in (of.own, of.next))) for of in shares]


def to_values(planes: NDArray[np.uint64], cells: int) -> NDArray[np.uint64]:
    """Inverse of `bitslice.to_planes` for up to 64 planes."""
    bits = to_bits(planes, cells, np.uint64)
    values = np.zeros(cells, np.uint64)
    for j in range(len(planes)):
        values |= bits[j] << np.uint64(j)
    return values


def run_trio(
    body: Callable[[Trio], T],
    tap: Callable[[Frame], None] | None = None,
    network: MemoryNetwork | None = None,
) -> tuple[list[T], list[Traffic]]:
    """Run `body` at the three parties; their results and traffic."""
    network = network or MemoryNetwork(3, tap=tap)

    def party(wire: Wire) -> T:
        return body(Trio(wire))

    results = network.run([party] * 3)
    return results, [network.traffic(i) for i in range(3)]


def without_a_key(base: MemoryNetwork, party: int) -> MemoryNetwork:
    """A network with the keys of `base` that `party` has, and another one between the other two."""
    changed, others = MemoryNetwork(3, session_id=bytes(32)), ((party + 1) % 3, (party + 2) % 3)
    fresh = changed.key(*others)
    changed.share_keys(base)
    changed._keys[frozenset(others)] = fresh
    return changed


def total(shares: list[RingShare]) -> NDArray[Any]:
    """The shared value; every component must be held alike by its two holders."""
    for i in range(3):
        np.testing.assert_array_equal(shares[i].next, shares[(i + 1) % 3].own)
    return shares[0].own + shares[1].own + shares[2].own


def parity(shares: list[BitShare]) -> NDArray[np.uint64]:
    """The shared words; every component must be held alike by its two holders."""
    for i in range(3):
        np.testing.assert_array_equal(shares[i].next, shares[(i + 1) % 3].own)
    return shares[0].own ^ shares[1].own ^ shares[2].own


def spread(count: int, largest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` integers in [-largest, largest], the extremes and 0, 1, -1 first."""
    values = rng.integers(-largest, largest, count, endpoint=True)
    extremes = np.array([largest, -largest, 0, 1, -1])[:count]
    values[: len(extremes)] = np.clip(extremes, -largest, largest)
    return values


def dealers(cells: int) -> list[NDArray[np.int64]]:
    """Which of `cells` cells each party deals for: every third one, as in a marginal that is cut up."""
    return [np.arange(dealer, cells, DEALERS) for dealer in range(DEALERS)]


def by_dealer(
    trio: Trio, x: RingShare, lengths: NDArray[np.int64], planes: int, quads: bool = False
) -> list[DealerCells]:
    """Consecutive segments of shared cells as `add_l1_sums` takes them, the bits shared anew (1 round)."""
    places = dealers(len(x))
    known = [addend_of(trio, x[place], dealer) for dealer, place in enumerate(places)]
    edges = np.append(0, np.cumsum(lengths))
    inside = [np.diff(np.searchsorted(place, edges)) for place in places]
    bits = share_bits(trio, known, planes, quads)
    return [DealerCells(*parts, quads) for parts in zip(known, bits, inside, strict=True)]


def l1_sums(trio: Trio, cells: Sequence[DealerCells], planes: int, adder: Form | None = None) -> RingShare:
    """Sums of |a + b| over each segment of the three parts together, one batch: one shared element per
    segment."""
    parts = np.zeros(len(cells[0].lengths), cells[0].addend.dtype)
    add_l1_sums(trio, cells, planes, adder, parts)
    return reshare(trio, parts)


def distances(
    trio: Trio, x: RingShare, lengths: NDArray[np.int64], planes: int, adder: Form | None = None
) -> RingShare:
    """Sums of |x| over consecutive segments, from nothing but the shares."""
    return l1_sums(trio, by_dealer(trio, x, lengths, planes, adder == "quads"), planes, adder)


@contextmanager
def small_groups(cell_range: int, group: int, cached: int) -> Iterator[None]:
    """Selections compute with so many cells at a time, and keep the bits of so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpc_protocols.public.answers.MAX_RANGE", cell_range)
        patch.setattr("mpc_protocols.public.answers.MAX_GROUP", group)
        patch.setattr(bit_cache, "MAX_CACHED", cached)
        layouts.cache_clear()
        try:
            yield
        finally:
            layouts.cache_clear()


def answers_of(handles: Sequence[int], answers: Sequence[NDArray[Any]]) -> Answers:
    """Integer answers of candidates that are one group, whatever their sizes."""
    ranges = [
        (q, CellRange(handle, 0, len(cells)))
        for q, (handle, cells) in enumerate(zip(handles, answers, strict=True))
    ]
    return Answers.of(DealerLayout(ranges, DEALERS), answers)
