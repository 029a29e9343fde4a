"""Shared bits of the cells that were compared before: they travel once per sharing and cell (`malicious.md` 4).

The public answer c of the model is subtracted from the component that the dealer of a cell lacks, so the dealer's part of the
cell does not change from one selection to the next, and the evaluators' shares of its bits (`dealt_sign.share_bits`) are used
again. They are shares, not masks: what is opened between evaluators contains fresh masks each time. Which cells are compared is
public (c is not 0 there), so each cell's bits are shared when it is first compared, and kept cell by cell, since the next
selection compares other cells. A marginal that is not large and almost empty (`dense`) shares the bits of all its cells at
once: the others' turn would come, and cost every selection a round. If the integers' width k changes, all are shared anew.

Where c is 0, |x - c| = x: the dealer's part of the cell and the first evaluator's are two numbers that add up to x, so each adds
its own to what it reshares anyway (`absolute.absolute_sums`).

Memory at a party: 5 bytes for each cell of a marginal that was a candidate, and 4 ceil((1.5 (k-1)) / 32) if it evaluates it, as
for two thirds of them. Threat model: `dealing`; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle
from mpc_protocols.replicated.absolute import Third, known_of
from mpc_protocols.replicated.bitslice import Elements
from mpc_protocols.replicated.dealt_sign import Packed, packed_words, share_bits
from mpc_protocols.replicated.ring import RingShare
from mpc_protocols.replicated.trio import Trio
from mpc_protocols.thirds import THIRDS, Answers, Cut, Flags, pieces

FEW = 1 << 13
"""Cells of a marginal whose bits are shared whether they are compared or not: some 25 kB of all parties together."""
SPARSE = 16


def dense(compared: int, cells: int) -> bool:
    """Whether a marginal of so many cells, so many of them compared, shares the bits of all of them."""
    return cells <= FEW or SPARSE * compared >= cells


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


class _Store:
    """What a party holds of one third of all marginals that were ever candidates, a column per cell."""

    def __init__(self, planes: int, evaluates: bool) -> None:
        self.evaluates = evaluates
        self.columns: dict[Handle, slice] = {}
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
            self.columns[handle] = slice(count, count + len(part))
            count += len(part)
        count -= len(self.known)
        if count:
            self.complete = False
            self.known = np.concatenate([self.known, *(part for _, part in parts)])
            self.shared = np.concatenate((self.shared, np.zeros(count, np.bool_)))
            if self.evaluates:
                self.bits = np.concatenate((self.bits, np.zeros((len(self.bits), count), np.uint32)), axis=1)


@dataclass(frozen=True)
class _Choice:
    """The cells of a list of candidates in a `_Store`: `columns` of consecutive ones, in dealt order."""

    columns: Sequence[slice]

    @classmethod
    def of(cls, columns: Sequence[slice]) -> _Choice:
        """Neighbours become one."""
        joined: list[slice] = []
        for each in columns:
            if joined and joined[-1].stop == each.start:
                joined[-1] = slice(joined[-1].start, each.stop)
            else:
                joined.append(each)
        return cls(joined)

    def take(self, rows: NDArray[Any]) -> NDArray[Any]:
        """These columns of an array of shape (..., columns): a view if they lie together."""
        if len(self.columns) == 1:
            return rows[..., self.columns[0]]
        return np.concatenate([rows[..., :0], *(rows[..., each] for each in self.columns)], axis=-1)

    def numbers(self, flags: Flags) -> NDArray[np.intp]:
        """The columns of the cells flagged."""
        whole = np.concatenate([np.empty(0, np.intp), *(np.arange(each.start, each.stop) for each in self.columns)])
        return whole[flags]


class SharedBits:
    """One party's shares of the bits of compared cells."""

    def __init__(self, trio: Trio) -> None:
        self._trio = trio
        self._planes = 0
        self._stores: list[_Store] = []
        self._cut: Cut | None = None
        self._choices: list[_Choice] = []
        self._seen: set[Handle] = set()

    def thirds(self, shares: Sequence[RingShare], answers: Answers, planes: int) -> tuple[list[Third], Elements]:
        """What `absolute_sums` needs to add up |x - c| over all candidates: the cells whose c is not 0, a segment for each
        candidate, and this party's part of the others' sums.

        shares: this party's share of each candidate, the same whenever it is one. One round if cells are compared for the first
        time, `bit_rows(planes)` bits each; else none.
        """
        cut = answers.cut
        self._find(shares, cut, planes)
        if not all(store.complete for store in self._stores):
            self._share(self._with_dense(answers))
        parts = np.zeros(len(cut.lengths), np.uint32)
        return [self._third(third, answers, parts) for third in range(THIRDS)], parts

    def _third(self, third: int, answers: Answers, parts: Elements) -> Third:
        """One third of the compared cells; what the others of it are to this party is added to the candidates' `parts`."""
        store, choice, place = self._stores[third], self._choices[third], answers.cut.places[third]
        known: Elements = choice.take(store.known)
        bits: Packed = choice.take(store.bits) if store.evaluates else store.bits
        nonzero, lengths = answers.nonzero[place], answers.cut.counts[third]
        if not nonzero.all():
            if self._trio.right != third:  # of the two evaluators, the first adds what both know
                parts += answers.cut.sums(third, known * ~nonzero, np.uint32)
            where = np.flatnonzero(nonzero)
            lengths = np.diff(np.searchsorted(where, np.cumsum([0, *lengths])))
            known, bits = known.take(where), bits.take(where, axis=1) if store.evaluates else bits
            if store.evaluates:
                known -= answers.cells[place].take(where)
        elif store.evaluates:
            known = known - answers.cells[place]
        return Third(known, bits, lengths)

    def _find(self, shares: Sequence[RingShare], cut: Cut, planes: int) -> None:
        """Where the candidates' cells are; what is new is stored."""
        if planes != self._planes:
            self._planes = planes
            self._seen.clear()
            for store in self._stores:
                store.void(planes)
        self._stores = self._stores or [_Store(planes, third != self._trio.me) for third in range(THIRDS)]
        if self._cut is cut:
            return
        self._cut, self._choices = cut, []
        for third, (store, owned) in enumerate(zip(self._stores, cut.pieces, strict=True)):
            store.add([(cut.handles[q], known_of(self._trio, shares[q][piece], third)) for q, piece in owned
                       if cut.handles[q] not in store.columns])
            self._choices.append(_Choice.of([store.columns[cut.handles[q]] for q, _ in owned]))

    def _with_dense(self, answers: Answers) -> list[Flags]:
        """Of each third, the compared cells, and all cells of candidates that are dense when they are first compared."""
        cut, flags = answers.cut, [answers.nonzero[place] for place in answers.cut.places]
        compared = np.sum([cut.sums(third, part, np.int64) for third, part in enumerate(flags)], axis=0)
        whole = np.array([handle not in self._seen and dense(int(count), length)
                          for handle, count, length in zip(cut.handles, compared, cut.lengths, strict=True)])
        self._seen.update(cut.handles)
        if not whole.any():
            return flags
        return [part | np.repeat(whole, counts) for part, counts in zip(flags, cut.counts, strict=True)]

    def _share(self, flags: Sequence[Flags]) -> None:
        """Share the bits of those of these cells whose bits are not shared yet."""
        stores, choices = self._stores, self._choices
        fresh = [part & ~choice.take(store.shared) for part, choice, store in zip(flags, choices, stores, strict=True)]
        if not any(part.any() for part in fresh):
            return
        columns = [choice.numbers(part) for choice, part in zip(choices, fresh, strict=True)]
        shared = share_bits(self._trio, [store.known[new] for store, new in zip(stores, columns, strict=True)], self._planes)
        for store, new, bits in zip(stores, columns, shared, strict=True):
            store.shared[new] = True
            store.complete = bool(store.shared.all())
            if store.evaluates:
                store.bits[:, new] = bits
