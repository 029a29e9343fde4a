"""Shared bits of the cells that were compared before: they travel once per sharing and cell (`malicious.md` 4).

The public answer c of the model is subtracted from the component that the dealer of a cell lacks, so the dealer's part of the
cell does not change from one selection to the next, and the evaluators' shares of its bits (`dealt_sign.share_bits`) are used
again. They are shares, not masks: what is opened between evaluators contains fresh masks each time. Which cells are compared is
public (c is not 0 there), so each cell's bits are shared when it is first compared, and kept cell by cell, since the next
selection compares other cells. A marginal of which half the cells are compared when it first is shares the bits of all: the
others' turn would come, and cost a round. If the integers' width k changes, all are shared anew.

Memory at a party: 21 bytes for each cell of a compared marginal (16 for where it is), and 4 ceil((1.5 (k-1)) / 32) if it
evaluates it, as for two thirds of them. Threat model: `dealing`; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle
from mpc_protocols.replicated.absolute import Third, known_of
from mpc_protocols.replicated.bitslice import Elements
from mpc_protocols.replicated.dealt_sign import Packed, packed_words, share_bits
from mpc_protocols.replicated.ring import RingShare
from mpc_protocols.replicated.trio import Trio
from mpc_protocols.thirds import THIRDS, pieces

Flags = NDArray[np.bool_]


Marginal = tuple[Handle, RingShare]
"""A candidate: its handle and this party's share of it, the same share whenever it is a candidate."""


def dense(compared: int, cells: int) -> bool:
    """Whether a marginal of so many cells, so many of them compared, shares the bits of all of them."""
    return 2 * compared >= cells


class ComparedCells:
    """Which cells' bits are shared: public, for predictions (`costs`)."""

    def __init__(self) -> None:
        self.planes = 0
        self._shared: dict[Handle, Flags] = {}

    def begin(self, planes: int) -> bool:
        """A selection with integers of `planes` bits: True if everything that was shared before is void."""
        void, self.planes = planes != self.planes, planes
        if void:
            self._shared.clear()
        return void

    def fresh(self, handle: Handle, compared: Flags) -> Flags:
        """The cells whose bits are shared now that these are compared; from now on they are."""
        before = self._shared.get(handle)
        if before is None:
            found = np.ones_like(compared) if dense(int(np.count_nonzero(compared)), len(compared)) else compared.copy()
            self._shared[handle] = found
            return found.copy()
        found = compared & ~before
        before |= compared
        return found


def count_thirds(handle: Handle, flags: Flags) -> list[int]:
    """How many of the cells flagged belong to each dealer."""
    found = [0] * THIRDS
    for third, piece in pieces(handle, len(flags)):
        found[third] = int(np.count_nonzero(flags[piece]))
    return found


@dataclass(frozen=True)
class _Places:
    """Where the cells of a list of candidates are, per third: their numbers among the cells of all these candidates, in order;
    their columns in the third's `_Store`; and how many of them precede those of each candidate, with their number at the end."""

    cells: list[NDArray[np.intp]]
    columns: list[NDArray[np.intp]]
    starts: list[NDArray[np.int64]]

    @cached_property
    def aligned(self) -> list[bool]:
        """Whether the columns are 0, 1, 2, ..."""
        return [bool(np.array_equal(columns, np.arange(len(columns)))) for columns in self.columns]


class _Store:
    """What a party holds of one third of all marginals ever compared, a column per cell."""

    def __init__(self, planes: int, evaluates: bool) -> None:
        self.evaluates = evaluates
        self.columns: dict[Handle, int] = {}
        self.known = np.empty(0, np.uint32)
        self.void(planes)

    def void(self, planes: int) -> None:
        """Forget which bits are shared."""
        self.complete = not len(self.known)
        self.shared = np.zeros(len(self.known), np.bool_)
        self.bits: Packed = np.zeros((packed_words(planes), len(self.known) if self.evaluates else 0), np.uint32)

    def add(self, parts: Sequence[tuple[Handle, Elements]]) -> None:
        """The cells of marginals that are new."""
        count = len(self.known)
        for handle, part in parts:
            self.columns[handle] = count
            count += len(part)
        count -= len(self.known)
        self.complete = self.complete and not count
        self.known = np.concatenate([self.known, *(part for _, part in parts)])
        self.shared = np.concatenate((self.shared, np.zeros(count, np.bool_)))
        if self.evaluates:
            self.bits = np.concatenate((self.bits, np.zeros((len(self.bits), count), np.uint32)), axis=1)


class SharedBits:
    """One party's shares of the bits of compared cells."""

    def __init__(self, trio: Trio) -> None:
        self._trio = trio
        self._planes = 0
        self._stores: list[_Store] = []
        self._places: tuple[list[Handle], _Places] | None = None
        self._seen: set[Handle] = set()

    def thirds(self, candidates: Sequence[Marginal], compared: Flags, answers: Elements, planes: int) -> list[Third]:
        """The compared cells of all candidates as `absolute_sums` takes them, a segment per candidate.

        compared, answers: of all candidates' cells, one candidate after the other; which are compared (c is not 0), and c, which
        is not used at the dealer's own cells. One round if cells are compared for the first time, `bit_rows(planes)` bits each;
        else none.
        """
        places = self._find(candidates, planes)
        if not all(store.complete for store in self._stores):
            shared = self._with_dense(candidates, compared)
            self._share([columns[shared[cells]] for columns, cells in zip(places.columns, places.cells, strict=True)])
        everything = bool(compared.all())
        return [self._third(t, places, None if everything else compared[places.cells[t]], answers) for t in range(THIRDS)]

    def _third(self, t: int, places: _Places, compared: Flags | None, answers: Elements) -> Third:
        """One third of the compared cells; `compared`: which of its cells they are, None for all."""
        store, cells, columns, starts = self._stores[t], places.cells[t], places.columns[t], places.starts[t]
        aligned = len(columns) == len(store.known) and places.aligned[t]  # the store's columns are the cells, in order
        if compared is None:
            known: Elements = store.known.copy() if aligned else store.known[columns]
            bits = store.bits if aligned else store.bits.take(columns, axis=1) if store.evaluates else store.bits
        else:
            where = np.flatnonzero(compared)
            cells, columns, starts = cells[where], columns[where], np.searchsorted(where, starts)
            known = store.known[columns]
            bits = store.bits.take(columns, axis=1) if store.evaluates else store.bits
        if store.evaluates:
            known -= answers[cells]
        return Third(known, bits, np.diff(starts))

    def _find(self, candidates: Sequence[Marginal], planes: int) -> _Places:
        """Places of the candidates' cells; what is new is stored."""
        if planes != self._planes:
            self._planes = planes
            self._seen.clear()
            for store in self._stores:
                store.void(planes)
        self._stores = self._stores or [_Store(planes, t != self._trio.me) for t in range(THIRDS)]
        handles = [handle for handle, _ in candidates]
        if self._places is None or self._places[0] != handles:
            self._places = handles, self._place(candidates)
        return self._places[1]

    def _with_dense(self, candidates: Sequence[Marginal], compared: Flags) -> Flags:
        """The flags of all candidates' cells, and of whole candidates that are dense when they are first compared."""
        lengths = [len(share) for _, share in candidates]
        counts = np.add.reduceat(compared, np.cumsum([0, *lengths[:-1]]), dtype=np.int64)
        whole = [handle not in self._seen and dense(int(count), length)
                 for (handle, _), count, length in zip(candidates, counts, lengths, strict=True)]
        self._seen.update(handle for handle, _ in candidates)
        flags: Flags = compared | np.repeat(whole, lengths) if any(whole) else compared
        return flags

    def _place(self, candidates: Sequence[Marginal]) -> _Places:
        owned: list[list[tuple[Marginal, slice, int]]] = [[] for _ in range(THIRDS)]
        before: list[list[int]] = [[0] for _ in range(THIRDS)]
        first = 0
        for handle, share in candidates:
            count = [0] * THIRDS
            for t, piece in pieces(handle, len(share)):
                owned[t].append(((handle, share), piece, first))
                count[t] = len(share.own[piece])
            for t in range(THIRDS):
                before[t].append(before[t][-1] + count[t])
            first += len(share)
        nowhere = np.empty(0, np.intp)
        cells, columns = [], []
        for t, store in enumerate(self._stores):
            store.add([(handle, known_of(self._trio, share[piece], t)) for (handle, share), piece, _ in owned[t]
                       if handle not in store.columns])
            numbers = [np.arange(start, start + len(share))[piece] for (_, share), piece, start in owned[t]]
            cells.append(np.concatenate([nowhere, *numbers]))
            columns.append(np.concatenate([nowhere, *(np.arange(len(number)) + store.columns[handle]
                                                      for number, ((handle, _), _, _) in zip(numbers, owned[t], strict=True))]))
        return _Places(cells, columns, [np.array(counts, np.int64) for counts in before])

    def _share(self, columns: Sequence[NDArray[np.intp]]) -> None:
        """Share the bits of those of these columns whose bits are not shared yet."""
        fresh = [asked[~store.shared[asked]] for asked, store in zip(columns, self._stores, strict=True)]
        if not any(map(len, fresh)):
            return
        shared = share_bits(self._trio, [store.known[new] for store, new in zip(self._stores, fresh, strict=True)], self._planes)
        for store, new, bits in zip(self._stores, fresh, shared, strict=True):
            store.shared[new] = True
            store.complete = bool(store.shared.all())
            if store.evaluates:
                store.bits[:, new] = bits
