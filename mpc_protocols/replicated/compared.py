"""Shared bits of the cells that were compared before: they travel once per sharing and cell (`malicious.md` 4).

The public answer c of the model is subtracted from the component that the dealer of a cell lacks, so the dealer's part of the
cell does not change from one selection to the next, and the evaluators' shares of its bits (`dealt_sign.share_bits`) are used
again. They are shares, not masks: what is opened between evaluators contains fresh masks each time. Which cells are compared is
public (c is not 0 there), so each cell's bits are shared when it is first compared, and kept cell by cell, since the next
selection compares other cells. A marginal of which half the cells are compared when it first is shares the bits of all: the
others' turn would come, and cost a round. If the integers' width k changes, all are shared anew.

Memory at a party: 4 ceil((1.5 (k-1)) / 32) bytes for each cell of a compared marginal that it evaluates, two thirds of them.
Threat model: `dealing`; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Candidate:
    """A marginal to be compared. share: (cells,). compared: (cells,) where c is not 0. answer: (cells,) c; at a dealer's own
    cells it is not used."""

    handle: Handle
    share: RingShare
    compared: Flags
    answer: Elements


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


class _Store:
    """What a party holds of one third of all marginals ever compared, a column per cell."""

    def __init__(self, planes: int, evaluates: bool) -> None:
        self.evaluates = evaluates
        self.columns: dict[Handle, int] = {}
        self.known = np.empty(0, np.uint32)
        self.void(planes)

    def void(self, planes: int) -> None:
        """Forget which bits are shared."""
        self.shared = np.zeros(len(self.known), np.bool_)
        self.bits: Packed = np.zeros((packed_words(planes), len(self.known) if self.evaluates else 0), np.uint32)

    def add(self, parts: Sequence[tuple[Handle, Elements]]) -> None:
        """The cells of marginals that are new."""
        count = len(self.known)
        for handle, part in parts:
            self.columns[handle] = count
            count += len(part)
        count -= len(self.known)
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

    def thirds(self, candidates: Sequence[Candidate], planes: int) -> list[Third]:
        """The compared cells of all candidates as `absolute_sums` takes them, a segment per candidate.

        One round if cells are compared for the first time, `bit_rows(planes)` bits each; else none.
        """
        places = self._find(candidates, planes)
        flags = np.concatenate([candidate.compared for candidate in candidates])
        answers = np.concatenate([candidate.answer for candidate in candidates])
        compared = [flags[cells] for cells in places.cells]
        shared = self._with_dense(candidates, flags)
        self._share([columns[shared[cells]] for columns, cells in zip(places.columns, places.cells, strict=True)])
        found = []
        for t, store in enumerate(self._stores):
            columns = places.columns[t][compared[t]]
            known: Elements = store.known[columns]
            if t != self._trio.me:
                known -= answers[places.cells[t][compared[t]]]
            bits = store.bits.take(columns, axis=1) if store.evaluates else store.bits
            before = np.concatenate(([0], np.cumsum(compared[t])))[places.starts[t]]
            found.append(Third(known, bits, np.diff(before)))
        return found

    def _find(self, candidates: Sequence[Candidate], planes: int) -> _Places:
        """Places of the candidates' cells; what is new is stored."""
        if planes != self._planes:
            self._planes = planes
            self._seen.clear()
            for store in self._stores:
                store.void(planes)
        self._stores = self._stores or [_Store(planes, t != self._trio.me) for t in range(THIRDS)]
        handles = [candidate.handle for candidate in candidates]
        if self._places is None or self._places[0] != handles:
            self._places = handles, self._place(candidates)
        return self._places[1]

    def _with_dense(self, candidates: Sequence[Candidate], compared: Flags) -> Flags:
        """The flags of all candidates' cells, and of whole candidates that are dense when they are first compared."""
        whole = [candidate.handle not in self._seen and dense(int(np.count_nonzero(candidate.compared)), len(candidate.compared))
                 for candidate in candidates]
        self._seen.update(candidate.handle for candidate in candidates)
        if not any(whole):
            return compared
        flags: Flags = compared | np.repeat(whole, [len(candidate.compared) for candidate in candidates])
        return flags

    def _place(self, candidates: Sequence[Candidate]) -> _Places:
        owned: list[list[tuple[Candidate, slice, int]]] = [[] for _ in range(THIRDS)]
        before: list[list[int]] = [[0] for _ in range(THIRDS)]
        first = 0
        for candidate in candidates:
            count = [0] * THIRDS
            for t, piece in pieces(candidate.handle, len(candidate.compared)):
                owned[t].append((candidate, piece, first))
                count[t] = len(candidate.compared[piece])
            for t in range(THIRDS):
                before[t].append(before[t][-1] + count[t])
            first += len(candidate.compared)
        nowhere = np.empty(0, np.intp)
        cells, columns = [], []
        for t, store in enumerate(self._stores):
            store.add([(candidate.handle, known_of(self._trio, candidate.share[piece], t)) for candidate, piece, _ in owned[t]
                       if candidate.handle not in store.columns])
            numbers = [np.arange(len(candidate.compared))[piece] + start for candidate, piece, start in owned[t]]
            cells.append(np.concatenate([nowhere, *numbers]))
            columns.append(np.concatenate([nowhere, *(np.arange(len(number)) + store.columns[candidate.handle]
                                                      for number, (candidate, _, _) in zip(numbers, owned[t], strict=True))]))
        return _Places(cells, columns, [np.array(counts, np.int64) for counts in before])

    def _share(self, columns: Sequence[NDArray[np.intp]]) -> None:
        """Share the bits of those of these columns whose bits are not shared yet."""
        fresh = [asked[~store.shared[asked]] for asked, store in zip(columns, self._stores, strict=True)]
        if not any(map(len, fresh)):
            return
        shared = share_bits(self._trio, [store.known[new] for store, new in zip(self._stores, fresh, strict=True)], self._planes)
        for store, new, bits in zip(self._stores, fresh, shared, strict=True):
            store.shared[new] = True
            if store.evaluates:
                store.bits[:, new] = bits
