"""The cells of a selection's answers: which dealer's each is, in which order they stand, and what stands for
them in a step.

Public, alike at every party, for the whole run. A backend may compute with the cells of an answer in roles:
then one computing party, the dealer, needs to know of the model's answers of its own cells only which are
zero (`replicated.scores.dealer`). So the cells are cut into as many parts as the backend has dealers, 1 if it
has no such roles. Every dealers-th cell of a marginal belongs to the same dealer, so that the zeros of the
model's answers, which cluster, burden all alike. A marginal of few cells is one dealer's as a whole, in turn
by its handle: cutting it up would only add messages.

Groups. A selection computes with GROUP cells at a time, so that its memory does not grow with the cells of
its candidates. A marginal of more than RANGE cells counts as several ranges, the same ones in every
selection; ranges fill a group in order.

Dealt order. The cells of a group stand dealer by dealer: those of dealer 0 in all ranges, one range after the
other, then those of dealer 1, and so on (`DealerLayout`). Whatever is computed, sent or hashed cell by cell
is in this order, so that a dealer's cells are one piece of memory.

The hash of a group's answers that a step announces is made of the bitmap of zeros, which all see, and of a
digest of each dealer's part. A dealer gets, in place of the answers of its own cells, their hash and their
sums (`PartDigest`), and checks range, sums and hash of all answers with them. What one party cannot check
itself, all others do, against the same hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle

Cells = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]
SPLIT = 1024
"""Cells from which on a marginal is cut up: the parts of three dealers fill at least five words of 64 cells."""
MAX_RANGE = 1 << 18
"""Upper limit of cells per range."""
MAX_GROUP = 1 << 21
"""Upper limit of cells per group. A party holds about 30 bytes per cell while the group is computed, cached
shares included."""


_NO_CELLS = np.empty(0, np.uint32)


class CellRange(NamedTuple):
    """Consecutive cells of a marginal: all of them, or a part that is the same in every selection."""

    handle: Handle
    start: int
    stop: int

    @property
    def cells(self) -> int:
        """How many."""
        return self.stop - self.start


def cell_ranges(handle: Handle, cells: int) -> list[CellRange]:
    """The ranges of a marginal, in order."""
    return [CellRange(handle, start, min(start + MAX_RANGE, cells)) for start in range(0, cells, MAX_RANGE)]


def dealer_slices(handle: Handle, cells: int, dealers: int) -> list[tuple[int, slice]]:
    """The dealers of a range of so many cells, each with its cells; together they are all cells, once."""
    if cells < SPLIT:
        return [(handle % dealers, slice(None))]
    return [(dealer, slice(dealer, None, dealers)) for dealer in range(dealers)]


class DealerLayout:
    """The cells of a group of ranges in dealt order.

    dealers: how many. ranges: of the group. owners: the position of each range's candidate. candidates: the slice of those
    positions. slices: of each dealer, (number of the range, its cells there), in order. slice_cells: of each dealer, how many
    cells each of these slices has, int64. counts: of each dealer, how many cells of each candidate, int64 (candidates,), may be
    0. places: where each dealer's cells stand in dealt order. size: of all cells.
    """

    def __init__(self, group: Sequence[tuple[int, CellRange]], dealers: int) -> None:
        """group: ranges with the positions of their candidates, in order."""
        first = group[0][0] if group else 0
        self.dealers = dealers
        self.owners, self.ranges = tuple(q for q, _ in group), tuple(cells for _, cells in group)
        self.candidates = slice(first, group[-1][0] + 1 if group else 0)
        self.size = sum(cells.cells for cells in self.ranges)
        self.slices: list[list[tuple[int, slice]]] = [[] for _ in range(dealers)]
        sizes: list[list[int]] = [[] for _ in range(dealers)]
        slice_candidates: list[list[int]] = [[] for _ in range(dealers)]
        for number, (q, cells) in enumerate(group):
            for dealer, part in dealer_slices(cells.handle, cells.cells, dealers):
                self.slices[dealer].append((number, part))
                sizes[dealer].append(len(range(cells.cells)[part]))
                slice_candidates[dealer].append(q - first)
        self.slice_cells = [np.array(lengths, np.int64) for lengths in sizes]
        self._slice_candidates = [np.array(positions, np.intp) for positions in slice_candidates]
        self.counts = np.stack(
            [
                self._per_candidate(dealer, lengths, np.int64)
                for dealer, lengths in enumerate(self.slice_cells)
            ]
        )
        self.places = [slice(*ends) for ends in pairwise(accumulate(map(sum, sizes), initial=0))]
        self._pieces = [
            (number, None if part == slice(None) else part) for owned in self.slices for number, part in owned
        ]
        starts = [0, *accumulate(cells.cells for cells in self.ranges)]
        self._flat_pieces = [
            slice(starts[number] + (part.start or 0), starts[number + 1], part.step)
            for owned in self.slices
            for number, part in owned
        ]
        self._targets: list[list[tuple[slice, slice]]] = [[] for _ in self.ranges]
        stop = 0
        for owned, lengths in zip(self.slices, sizes, strict=True):
            for (number, part), length in zip(owned, lengths, strict=True):
                start, stop = stop, stop + length
                self._targets[number].append((slice(start, stop), part))

    @cached_property
    def range_set(self) -> frozenset[CellRange]:
        """The ranges, to be looked up."""
        return frozenset(self.ranges)

    @cached_property
    def range_cells(self) -> NDArray[np.int64]:
        """How many cells each range has."""
        return np.array([stop - start for _, start, stop in self.ranges], np.int64)

    def by_dealer(self, values: Iterable[Cells]) -> NDArray[np.uint32]:
        """Integers in [0, 2^32) of each range, in dealt order."""
        of = list(values)
        parts = [of[number] if part is None else of[number][part] for number, part in self._pieces]
        return np.concatenate(parts or [_NO_CELLS], dtype=np.uint32, casting="unsafe")

    def dealt(self, flat: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """As `by_dealer`, of the ranges' cells one range after the other."""
        return np.concatenate([_NO_CELLS, *(flat[piece] for piece in self._flat_pieces)])

    def by_range(self, by_dealer: NDArray[Any]) -> list[NDArray[Any]]:
        """Inverse of `by_dealer`, of any dtype: the cells of each range."""
        values = [np.empty(cells.cells, by_dealer.dtype) for cells in self.ranges]
        for of_range, targets in zip(values, self._targets, strict=True):
            for place, part in targets:
                of_range[part] = by_dealer[place]
        return values

    def slice_sums(self, dealer: int, cells: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """Sums of one dealer's cells over each of its slices."""
        counts = self.slice_cells[dealer]
        none: NDArray[Any] = np.empty(0, dtype)
        return np.add.reduceat(cells, np.cumsum(counts) - counts, dtype=dtype) if len(counts) else none

    def sums(self, dealer: int, cells: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """Sums of one dealer's cells over each candidate: shape (candidates,)."""
        return self._per_candidate(dealer, self.slice_sums(dealer, cells, dtype), dtype)

    def _per_candidate(
        self, dealer: int, of_slices: NDArray[Any], dtype: type[np.integer[Any]]
    ) -> NDArray[Any]:
        sums = np.zeros(self.candidates.stop - self.candidates.start, dtype)
        np.add.at(sums, self._slice_candidates[dealer], of_slices)
        return sums


@lru_cache(maxsize=4)
def layouts(handles: tuple[Handle, ...], lengths: tuple[int, ...], dealers: int) -> tuple[DealerLayout, ...]:
    """The groups of these candidates; kept, for the next selection has often the same ones."""
    groups: list[list[tuple[int, CellRange]]] = [[]]
    filled = 0
    for q, (handle, length) in enumerate(zip(handles, lengths, strict=True)):
        for cells in cell_ranges(handle, length):
            if filled and filled + cells.cells > MAX_GROUP:
                groups.append([])
                filled = 0
            groups[-1].append((q, cells))
            filled += cells.cells
    return tuple(DealerLayout(group, dealers) for group in groups)


@dataclass(frozen=True)
class PartDigest:
    """The answers of one dealer's cells, in short. content: 32 bytes, their hash. sums: (candidates,), int64."""

    content: bytes
    sums: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """One party's part of the answers of a group, in dealt order.

    cells: uint32, 0 where this party deals and does not know better. nonzero: bool, where an answer is not 0,
    also there. withheld: the dealer that does not know the answers of its own cells, with their digest; None
    if all are known.
    """

    layout: DealerLayout
    cells: NDArray[np.uint32]
    nonzero: Flags
    withheld: tuple[int, PartDigest] | None = None

    @classmethod
    def of(cls, layout: DealerLayout, values: Iterable[Cells]) -> Answers:
        """At the party that knows them: integers in [0, 2^32) for each range."""
        return cls.together(layout, np.concatenate([_NO_CELLS, *values], dtype=np.uint32, casting="unsafe"))

    @classmethod
    def together(cls, layout: DealerLayout, flat: NDArray[np.uint32]) -> Answers:
        """As `of`, one range's after the other."""
        cells = layout.dealt(flat)
        return cls(layout, cells, cells != 0)

    @cached_property
    def bitmap(self) -> bytes:
        """Which answers are not 0, first cell in the highest bit; padding bits are 0."""
        return np.packbits(self.nonzero).tobytes()

    @cached_property
    def parts(self) -> tuple[PartDigest, ...]:
        """The digest of each dealer's part."""
        withheld = dict([self.withheld] if self.withheld else [])
        return tuple(withheld.get(dealer) or self._part(dealer) for dealer in range(self.layout.dealers))

    def _part(self, dealer: int) -> PartDigest:
        cells, counts = self.cells[self.layout.places[dealer]], self.layout.counts[dealer]
        hashed = hashlib.sha256(len(counts).to_bytes(8, "big") + counts.astype(">u8").tobytes())
        hashed.update(cells.astype("<u4", copy=False).data)
        return PartDigest(hashed.digest(), self.layout.sums(dealer, cells, np.int64))

    def digest(self) -> bytes:
        """The hash that a step announces, 32 bytes, from the bitmap and the digests of the parts."""
        hashed = hashlib.sha256(b"cosynth answers in thirds\0" + hashlib.sha256(self.bitmap).digest())
        for part in self.parts:
            hashed.update(
                len(part.sums).to_bytes(8, "big") + part.content + part.sums.astype("<i8").tobytes()
            )
        return hashed.digest()
