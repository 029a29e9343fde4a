"""Which computing party deals for which cells of a marginal (`replicated.dealing`), and what it may be told of the answers there.

Public, alike at every party, for the whole run. Every third cell of a marginal belongs to the same dealer, so that the zeros of
the model's answers, which cluster, burden all alike. A marginal of few cells is one dealer's as a whole, in turn by its handle:
cutting it up would only add messages.

Dealt order. The cells of a list of candidates stand dealer by dealer: party 0's of all candidates, one candidate after the
other, then party 1's, then party 2's (`Cut`). Whatever is computed, sent or hashed cell by cell in a selection is in this order,
so that a dealer's cells are one piece of memory.

A dealer needs the model's answers of all cells but its own, of which it needs only the zeros. So the hash of the answers that a
step announces is made of three: each dealer gets, in place of the answers of its own cells, their hash and their sums (`Part`),
and checks range, sums and hash of all answers with them. What one party cannot check itself, both others do, against the same
hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle

Cells = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]
THIRDS = 3
SPLIT = 1024
"""Cells from which on a marginal is cut up: its thirds fill at least five words of 64 cells."""


def pieces(handle: Handle, cells: int) -> list[tuple[int, slice]]:
    """The dealers of a marginal, each with its cells; together they are all cells, once."""
    if cells < SPLIT:
        return [(handle % THIRDS, slice(None))]
    return [(third, slice(third, None, THIRDS)) for third in range(THIRDS)]


class Cut:
    """The cells of a list of candidates in dealt order.

    handles, lengths: of the candidates, and their numbers of cells. pieces: of each dealer, (position of the candidate, its
    cells there), in order. counts: of each dealer, how many cells of each candidate, int64 (candidates,), may be 0. places:
    where each dealer's cells stand in dealt order. size: of all cells.
    """

    def __init__(self, handles: Sequence[Handle], lengths: Sequence[int]) -> None:
        self.handles, self.lengths, self.size = tuple(handles), tuple(lengths), sum(lengths)
        self.pieces: list[list[tuple[int, slice]]] = [[] for _ in range(THIRDS)]
        self.counts = np.zeros((THIRDS, len(self.lengths)), np.int64)
        for q, (handle, length) in enumerate(zip(handles, lengths, strict=True)):
            for third, piece in pieces(handle, length):
                self.pieces[third].append((q, piece))
                self.counts[third, q] = len(range(length)[piece])
        self.places = [slice(*ends) for ends in pairwise(accumulate(map(int, self.counts.sum(axis=1)), initial=0))]

    def dealt(self, answers: Sequence[Cells]) -> NDArray[np.uint32]:
        """Integers in [0, 2^32) of each candidate, in dealt order."""
        return np.concatenate([np.empty(0, np.uint32), *(answers[q][piece] for owned in self.pieces for q, piece in owned)],
                              dtype=np.uint32, casting="unsafe")

    def sums(self, third: int, cells: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """Sums of one dealer's cells over each candidate: shape (candidates,)."""
        counts = self.counts[third]
        found, filled = np.zeros(len(counts), dtype), np.flatnonzero(counts)
        if len(filled):
            found[filled] = np.add.reduceat(cells, (np.cumsum(counts) - counts)[filled], dtype=dtype)
        return found


@lru_cache(maxsize=4)
def cut(handles: tuple[Handle, ...], lengths: tuple[int, ...]) -> Cut:
    """The cut of these candidates; kept, for a selection asks for it several times and the next has often the same candidates."""
    return Cut(handles, lengths)


@dataclass(frozen=True)
class Part:
    """The answers of one dealer's cells, in short. content: 32 bytes, their hash. sums: (candidates,), int64."""

    content: bytes
    sums: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """What one party has of the kept candidates' answers, in dealt order.

    cells: uint32, 0 where this party deals and does not know better. nonzero: bool, where an answer is not 0, also there. told:
    the dealer that does not know the answers of its own cells, with their part; None if all are known.
    """

    cut: Cut
    cells: NDArray[np.uint32]
    nonzero: Flags
    told: tuple[int, Part] | None = None

    @classmethod
    def of(cls, handles: Sequence[Handle], answers: Sequence[Cells]) -> Answers:
        """At the party that knows them: integers in [0, 2^32) for each candidate."""
        found = cut(tuple(handles), tuple(map(len, answers)))
        cells = found.dealt(answers)
        return cls(found, cells, cells != 0)

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
        """The hash that a step announces, 32 bytes, from the three parts."""
        hashed = hashlib.sha256(b"cosynth answers in thirds\0")
        for part in self.parts:
            hashed.update(len(part.sums).to_bytes(8, "big") + part.content + part.sums.astype("<i8").tobytes())
        return hashed.digest()

    def values(self) -> list[NDArray[np.uint32]]:
        """The answers of each candidate, in the order of its cells; 0 where they are not known."""
        found = [np.empty(length, np.uint32) for length in self.cut.lengths]
        start = 0
        for owned, counts in zip(self.cut.pieces, self.cut.counts, strict=True):
            for q, piece in owned:
                stop = start + int(counts[q])
                found[q][piece] = self.cells[start:stop]
                start = stop
        return found
