"""Which computing party deals for which cells of a marginal (`replicated.dealing`), and what it may be told of the answers there.

Public, alike at every party, for the whole run. Every third cell of a marginal belongs to the same dealer, so that the zeros of
the model's answers, which cluster, burden all alike. A marginal of few cells is one dealer's as a whole, in turn by its handle:
cutting it up would only add messages.

Groups. A selection computes with GROUP cells at a time, so that its memory does not grow with the cells of its candidates. A
marginal of more than SPAN cells counts as several spans, the same ones in every selection; spans fill a group in order.

Dealt order. The cells of a group stand dealer by dealer: party 0's of all spans, one span after the other, then party 1's, then
party 2's (`Cut`). Whatever is computed, sent or hashed cell by cell in a selection is in this order, so that a dealer's cells are
one piece of memory.

A dealer needs the model's answers of all cells but its own, of which it needs only the zeros. So the hash of a group's answers
that a step announces is made of the bitmap of zeros, which all see, and of three parts: each dealer gets, in place of the answers
of its own cells, their hash and their sums (`Part`), and checks range, sums and hash of all answers with them. What one party
cannot check itself, both others do, against the same hash.
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
THIRDS = 3
SPLIT = 1024
"""Cells from which on a marginal is cut up: its thirds fill at least five words of 64 cells."""
SPAN = 1 << 18
"""Most cells of a span."""
GROUP = 1 << 21
"""Most cells of a group: some 30 bytes each at a party while they are computed with, what is kept of them included."""


class Span(NamedTuple):
    """Consecutive cells of a marginal: all of them, or a part that is the same in every selection."""

    handle: Handle
    start: int
    stop: int

    @property
    def cells(self) -> int:
        """How many."""
        return self.stop - self.start


def spans(handle: Handle, cells: int) -> list[Span]:
    """The spans of a marginal, in order."""
    return [Span(handle, start, min(start + SPAN, cells)) for start in range(0, cells, SPAN)]


def pieces(handle: Handle, cells: int) -> list[tuple[int, slice]]:
    """The dealers of a span of so many cells, each with its cells; together they are all cells, once."""
    if cells < SPLIT:
        return [(handle % THIRDS, slice(None))]
    return [(third, slice(third, None, THIRDS)) for third in range(THIRDS)]


class Cut:
    """The cells of a group of spans in dealt order.

    spans: of the group, with the positions of their candidates as `owners`. candidates: the slice of those positions. pieces: of
    each dealer, (number of the span, its cells there), in order. piece_cells: of each dealer, how many cells each of these pieces
    has, int64. counts: of each dealer, how many cells of each candidate, int64 (candidates,), may be 0. places: where each
    dealer's cells stand in dealt order. size: of all cells.
    """

    def __init__(self, group: Sequence[tuple[int, Span]]) -> None:
        """group: spans with the positions of their candidates, in order."""
        first = group[0][0] if group else 0
        self.owners, self.spans = tuple(q for q, _ in group), tuple(span for _, span in group)
        self.candidates = slice(first, group[-1][0] + 1 if group else 0)
        self.size = sum(span.cells for span in self.spans)
        self.pieces: list[list[tuple[int, slice]]] = [[] for _ in range(THIRDS)]
        sizes: list[list[int]] = [[] for _ in range(THIRDS)]
        dealt_for: list[list[int]] = [[] for _ in range(THIRDS)]
        for number, (q, span) in enumerate(group):
            for third, piece in pieces(span.handle, span.cells):
                self.pieces[third].append((number, piece))
                sizes[third].append(len(range(span.cells)[piece]))
                dealt_for[third].append(q - first)
        self.piece_cells = [np.array(of, np.int64) for of in sizes]
        self._dealt_for = [np.array(of, np.intp) for of in dealt_for]
        self.counts = np.stack(
            [self._per_candidate(third, of, np.int64) for third, of in enumerate(self.piece_cells)]
        )
        self.places = [slice(*ends) for ends in pairwise(accumulate(map(sum, sizes), initial=0))]
        self._targets: list[list[tuple[slice, slice]]] = [[] for _ in self.spans]
        stop = 0
        for owned, lengths in zip(self.pieces, sizes, strict=True):
            for (number, piece), length in zip(owned, lengths, strict=True):
                start, stop = stop, stop + length
                self._targets[number].append((slice(start, stop), piece))

    def dealt(self, values: Iterable[Cells]) -> NDArray[np.uint32]:
        """Integers in [0, 2^32) of each span, in dealt order."""
        found = np.empty(self.size, np.uint32)
        for cells, targets in zip(values, self._targets, strict=True):
            for place, piece in targets:
                found[place] = cells[piece]
        return found

    def of_spans(self, cells: NDArray[Any]) -> list[NDArray[Any]]:
        """Inverse of `dealt`, of any dtype: the cells of each span."""
        found = [np.empty(span.cells, cells.dtype) for span in self.spans]
        for of, targets in zip(found, self._targets, strict=True):
            for place, piece in targets:
                of[piece] = cells[place]
        return found

    def piece_sums(self, third: int, cells: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """Sums of one dealer's cells over each of its pieces."""
        counts = self.piece_cells[third]
        found: NDArray[Any] = np.empty(0, dtype)
        return np.add.reduceat(cells, np.cumsum(counts) - counts, dtype=dtype) if len(counts) else found

    def sums(self, third: int, cells: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """Sums of one dealer's cells over each candidate: shape (candidates,)."""
        return self._per_candidate(third, self.piece_sums(third, cells, dtype), dtype)

    def _per_candidate(
        self, third: int, of_pieces: NDArray[Any], dtype: type[np.integer[Any]]
    ) -> NDArray[Any]:
        found = np.zeros(self.candidates.stop - self.candidates.start, dtype)
        np.add.at(found, self._dealt_for[third], of_pieces)
        return found


@lru_cache(maxsize=4)
def cuts(handles: tuple[Handle, ...], lengths: tuple[int, ...]) -> tuple[Cut, ...]:
    """The groups of these candidates; kept, for the next selection has often the same ones."""
    groups: list[list[tuple[int, Span]]] = [[]]
    filled = 0
    for q, (handle, length) in enumerate(zip(handles, lengths, strict=True)):
        for span in spans(handle, length):
            if filled and filled + span.cells > GROUP:
                groups.append([])
                filled = 0
            groups[-1].append((q, span))
            filled += span.cells
    return tuple(map(Cut, groups))


@dataclass(frozen=True)
class Part:
    """The answers of one dealer's cells, in short. content: 32 bytes, their hash. sums: (candidates,), int64."""

    content: bytes
    sums: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """What one party has of the answers of a group, in dealt order.

    cells: uint32, 0 where this party deals and does not know better. nonzero: bool, where an answer is not 0, also there. told:
    the dealer that does not know the answers of its own cells, with their part; None if all are known.
    """

    cut: Cut
    cells: NDArray[np.uint32]
    nonzero: Flags
    told: tuple[int, Part] | None = None

    @classmethod
    def of(cls, cut: Cut, values: Iterable[Cells]) -> Answers:
        """At the party that knows them: integers in [0, 2^32) for each span."""
        cells = cut.dealt(values)
        return cls(cut, cells, cells != 0)

    @cached_property
    def bitmap(self) -> bytes:
        """Which answers are not 0, first cell in the highest bit; padding bits are 0."""
        return np.packbits(self.nonzero).tobytes()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the three dealers."""
        told = dict([self.told] if self.told else [])
        return tuple(told.get(third) or self._part(third) for third in range(THIRDS))

    def _part(self, third: int) -> Part:
        cells, counts = self.cells[self.cut.places[third]], self.cut.counts[third]
        hashed = hashlib.sha256(len(counts).to_bytes(8, "big") + counts.astype(">u8").tobytes())
        hashed.update(cells.astype("<u4", copy=False).data)
        return Part(hashed.digest(), self.cut.sums(third, cells, np.int64))

    def digest(self) -> bytes:
        """The hash that a step announces, 32 bytes, from the bitmap and the three parts."""
        hashed = hashlib.sha256(b"cosynth answers in thirds\0" + hashlib.sha256(self.bitmap).digest())
        for part in self.parts:
            hashed.update(
                len(part.sums).to_bytes(8, "big") + part.content + part.sums.astype("<i8").tobytes()
            )
        return hashed.digest()
