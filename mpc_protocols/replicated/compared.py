"""Shared bits of the cells that were compared before: they travel once per sharing and cell (`malicious.md` 4).

The public answer c of the model is subtracted from the component that the dealer of a cell lacks, so the dealer's part of the
cell does not change from one selection to the next, and the evaluators' shares of its bits (`dealt_sign.share_bits`) are used
again. They are shares, not masks: what is opened between evaluators contains fresh masks each time. Which cells are compared is
public (c is not 0 there), so each cell's bits are shared when it is first compared, and kept cell by cell, since the next
selection compares other cells. If the integers' width k changes, all are shared anew.

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


class ComparedCells:
    """Which cells' bits are shared: public."""

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
        """The compared cells that are not shared yet; from now on they are."""
        before = self._shared.get(handle)
        if before is None:
            self._shared[handle] = compared.copy()
            return compared
        found = compared & ~before
        before |= compared
        return found


def count_thirds(handle: Handle, flags: Flags) -> list[int]:
    """How many of the cells flagged belong to each dealer."""
    found = [0] * THIRDS
    for third, piece in pieces(handle, len(flags)):
        found[third] = int(np.count_nonzero(flags[piece]))
    return found


class SharedBits:
    """One party's shares of the bits of compared cells."""

    def __init__(self, trio: Trio) -> None:
        self._trio = trio
        self._cells = ComparedCells()
        self._packed: dict[tuple[Handle, int], Packed] = {}

    def thirds(self, candidates: Sequence[Candidate], planes: int) -> list[Third]:
        """The compared cells of all candidates as `absolute_sums` takes them, a segment per candidate.

        One round if cells are compared for the first time, `bit_rows(planes)` bits each; else none.
        """
        if self._cells.begin(planes):
            self._packed.clear()
        fresh = [self._cells.fresh(candidate.handle, candidate.compared) for candidate in candidates]
        if any(flags.any() for flags in fresh):
            self._share(candidates, fresh, planes)
        known: list[list[Elements]] = [[] for _ in range(THIRDS)]
        bits: list[list[Packed]] = [[] for _ in range(THIRDS)]
        lengths = np.zeros((THIRDS, len(candidates)), np.int64)
        for q, candidate in enumerate(candidates):
            for third, piece in pieces(candidate.handle, len(candidate.compared)):
                where = _selector(candidate.compared[piece])
                part = known_of(self._trio, candidate.share[piece], third)[where]
                if third != self._trio.me:
                    part = part - candidate.answer[piece][where]
                    bits[third].append(self._packed[candidate.handle, third][:, where])
                known[third].append(part)
                lengths[third, q] = len(part)
        nothing = np.empty((packed_words(planes), 0), np.uint32)
        empty = candidates[0].share.own[:0]
        return [Third(np.concatenate([empty, *known[t]]), np.concatenate([nothing, *bits[t]], axis=1), lengths[t])
                for t in range(THIRDS)]

    def _share(self, candidates: Sequence[Candidate], fresh: Sequence[Flags], planes: int) -> None:
        """Share the bits of the fresh cells and keep them."""
        me = self._trio.me
        known: list[list[Elements]] = [[candidates[0].share.own[:0]] for _ in range(THIRDS)]
        for candidate, flags in zip(candidates, fresh, strict=True):
            for third, piece in pieces(candidate.handle, len(flags)):
                known[third].append(known_of(self._trio, candidate.share[piece], third)[_selector(flags[piece])])
        shared = share_bits(self._trio, [np.concatenate(parts) for parts in known], planes)
        done = [0] * THIRDS
        for candidate, flags in zip(candidates, fresh, strict=True):
            for third, piece in pieces(candidate.handle, len(flags)):
                if third == me:
                    continue
                count = int(np.count_nonzero(flags[piece]))
                arrived = shared[third][:, done[third]:done[third] + count]
                done[third] += count
                kept = self._packed.get((candidate.handle, third))
                if kept is None:
                    kept = self._packed[candidate.handle, third] = np.zeros((len(arrived), len(flags[piece])), np.uint32)
                kept[:, flags[piece]] = arrived


def _selector(flags: Flags) -> Flags | slice:
    """An index for the cells flagged, the cheaper one if that is all of them."""
    return slice(None) if flags.all() else flags
