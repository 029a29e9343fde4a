"""Shared bits of the cells that were compared before: they travel once per sharing and cell
(`docs/design/engine.md` 8).

The public answer c of the model is subtracted from the component that the dealer of a cell lacks, so the
dealer's part of the cell does not change from one selection to the next, and the evaluators' shares of its
bits (`masked_sign.share_bits`) are used again. They are shares, not masks: what is opened between evaluators
contains fresh masks each time. Which cells are compared is public (c is not 0 there), so each cell's bits are
shared when it is first compared, and kept cell by cell, since the next selection compares other cells. A
range that is not large and almost empty shares the bits of all cells at once (`shares_all`): sharing the
remaining bits later would cost each later selection a round.

Where parties are far apart and the cells of the first group are not too many (`shares_quads`), the bits of quads are
shared: more bits once, and a round less in every selection.

At most MAX_CACHED cells are kept: a group that does not fit beside the others drops all of them, and so does
another width k of the integers. What was dropped is shared anew. All pairs of 200 columns of ten values, and of their bins, are
2.3 million cells.

Where c is 0, |x - c| = x: the dealer's part of the cell and the first evaluator's are two numbers that add up
to x, so each adds its own to what it reshares anyway (`l1_distance.add_l1_sums`).

Memory at a party: 5 bytes for each cell kept, and 4 ceil((1.5 (k-1)) / 32) if it evaluates it, as for two
thirds of them; with quads 3.75 in place of 1.5. Threat model: `dealer`; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.scores.l1_distance import DealerCells, addend_of
from mpc_protocols.backends.replicated.scores.masked_sign import Packed, bit_rows, packed_words, share_bits
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.blank import Blank, blank
from mpc_protocols.engine.latency import FAR
from mpc_protocols.public.answers import MAX_GROUP, Answers, CellRange, DealerLayout, Flags

MAX_UNASKED = 1 << 13
"""Cells of a range whose bits are shared whether they are compared or not: some 25 kB of all parties
together."""
SPARSE = 16
PAYS_AFTER = 4
MAX_CACHED = 2 * MAX_GROUP
"""Most cells that are kept: those of two groups, so that memory is flat beyond them."""
MAX_FOUND = 4
"""Groups of which it is kept where their cells are: a run asks for the same ones again."""


def shares_all(compared: NDArray[np.int64], cells: NDArray[np.int64]) -> Flags:
    """Whether each range, of so many cells, so many of them compared, shares the bits of all of them."""
    return (cells <= MAX_UNASKED) | (SPARSE * compared >= cells)


def shares_quads(cells: int, planes: int, latency_bytes: int) -> bool:
    """Whether cells of which a first group has so many share the bits of quads: what these send more is worth
    the rounds that PAYS_AFTER selections save."""
    more = (bit_rows(planes, True) - bit_rows(planes)) * cells // (8 * DEALERS)
    return latency_bytes >= FAR and more <= PAYS_AFTER * latency_bytes


class _Store:
    """What a party keeps of the cells of one dealer, a column per cell; whether all their bits are shared
    (`complete`)."""

    def __init__(self, planes: int, evaluates: bool, quads: bool) -> None:
        self.evaluates = evaluates
        self.complete = True
        self._columns: dict[CellRange, slice] = {}
        self._without_columns: list[tuple[Sequence[CellRange], NDArray[np.int64], int]] = []
        self.addends: Elements = np.empty(0, np.uint32)
        self.has_bits = np.empty(0, np.bool_)
        self.bits: Packed = np.empty((packed_words(planes, quads), 0), np.uint32)

    def add(self, ranges: Sequence[CellRange], lengths: NDArray[np.int64], addends: Elements) -> slice:
        """The cells of ranges that are new, so many of each; returns their columns."""
        start, count = len(self.addends), len(addends)
        if count:
            self._without_columns.append((ranges, lengths, start))
            self.complete = False
            self.addends = np.concatenate([self.addends, addends]) if start else addends
            self.has_bits = np.concatenate((self.has_bits, np.zeros(count, np.bool_)))
            if self.evaluates:
                self.bits = np.concatenate((self.bits, np.zeros((len(self.bits), count), np.uint32)), axis=1)
        return slice(start, start + count)

    @property
    def columns(self) -> Mapping[CellRange, slice]:
        """Of each range, its columns. Looked up only where a group is kept in part: each range is one of thousands."""
        for ranges, lengths, start in self._without_columns:
            ends = (start + np.cumsum(lengths)).tolist()
            self._columns |= zip(ranges, map(slice, [start, *ends], ends), strict=False)
        self._without_columns.clear()
        return self._columns


@dataclass(frozen=True)
class _Choice:
    """The cells of a group in a `_Store`: `columns` of consecutive ones, in dealt order."""

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

    def flagged(self, rows: NDArray[Any], flags: Flags) -> Iterator[tuple[NDArray[Any], Flags | slice]]:
        """The columns of an array, neighbours together, with what picks the flagged ones among them."""
        start = 0
        for each in self.columns:
            part = flags[start : start + each.stop - each.start]
            start += len(part)
            yield rows[..., each], slice(None) if part.all() else part


class BitShareCache:
    """One party's shares of the bits of compared cells."""

    def __init__(self, trio: Trio) -> None:
        self._trio = trio
        self._planes = 0
        self.quads = False
        """Whether the bits of quads are shared, of what is kept."""
        self._stores: list[_Store] = []
        self._cached: set[CellRange] = set()
        self._cached_cells = 0
        self._layouts: list[tuple[tuple[CellRange, ...], list[_Choice]]] = []
        self._choices: list[_Choice] = []

    def dealer_cells(
        self, share: Callable[[CellRange], RingShare], answers: Answers, planes: int
    ) -> tuple[list[DealerCells], Elements]:
        """Input of `add_l1_sums` for |x - c| over a group: the cells whose c is not 0, a segment for each
        candidate, and this party's part of the others' sums.

        share: this party's share of a range, the same in each selection; asked for where it is not kept. One
        round if cells are shared, because they are compared for the first time or were dropped,
        `bit_rows` bits each; else none.
        """
        layout = answers.layout
        new = self._find(share, layout, planes)
        if not all(store.complete for store in self._stores):
            self._share(self._with_shared_ranges(answers, new))
        parts = np.zeros(layout.counts.shape[1], np.uint32)
        return [self._dealer_cells(dealer, answers, parts) for dealer in range(DEALERS)], parts

    def _dealer_cells(self, dealer: int, answers: Answers, parts: Elements) -> DealerCells:
        """The compared cells of one dealer; what its other cells are to this party is added to the
        candidates' `parts`."""
        store, choice, place = self._stores[dealer], self._choices[dealer], answers.layout.places[dealer]
        addends: Elements = choice.take(store.addends)
        bits: Packed = choice.take(store.bits) if store.evaluates else store.bits
        nonzero, lengths = answers.nonzero[place], answers.layout.counts[dealer]
        if not nonzero.all():
            if self._trio.right != dealer:  # of the two evaluators, the first adds what both know
                parts += answers.layout.sums(dealer, addends * ~nonzero, np.uint32)
            where = np.flatnonzero(nonzero)
            lengths = np.diff(np.searchsorted(where, np.append(0, np.cumsum(lengths))))
            addends, bits = addends.take(where), bits.take(where, axis=1) if store.evaluates else bits
            if store.evaluates:
                addends -= answers.cells[place].take(where)
        elif store.evaluates:
            addends = addends - answers.cells[place]
        return DealerCells(addends, bits, lengths, self.quads)

    def _find(
        self, share: Callable[[CellRange], RingShare], layout: DealerLayout, planes: int
    ) -> Set[CellRange]:
        """Where the group's cells are; what is new is stored. Returns which ranges are new."""
        known = next((of for ranges, of in self._layouts if ranges == layout.ranges), None)
        if planes == self._planes and known is not None:
            self._choices = known
            return set()
        new = layout.range_set - self._cached
        of_new = layout.size if len(new) == len(layout.ranges) else sum(cells.cells for cells in new)
        if planes != self._planes or self._cached_cells + of_new > MAX_CACHED:
            self.quads = shares_quads(layout.size, planes, self._trio.latency_bytes)
            self._stores = [_Store(planes, dealer != self._trio.me, self.quads) for dealer in range(DEALERS)]
            self._cached.clear()
            self._layouts.clear()
            self._cached_cells = 0
            new, of_new = layout.range_set, layout.size
        self._planes = planes
        self._cached |= new
        self._cached_cells += of_new
        self._choices = []
        for dealer, (store, owned) in enumerate(zip(self._stores, layout.slices, strict=True)):
            lengths, fresh = layout.slice_cells[dealer], owned
            if len(new) < len(layout.ranges):
                is_new = [layout.ranges[n] in new for n, _ in owned]
                fresh, lengths = list(compress(owned, is_new)), lengths[is_new]
            ranges = [layout.ranges[n] for n, _ in fresh]
            pieces = [piece for _, piece in fresh]
            added = store.add(ranges, lengths, self._addends(share, ranges, pieces, lengths, dealer))
            if len(fresh) == len(owned):
                self._choices.append(_Choice.of([added]))
            else:
                columns = store.columns
                self._choices.append(_Choice.of([columns[layout.ranges[n]] for n, _ in owned]))
        if layout.size <= MAX_CACHED:  # a larger one is shared anew each time
            self._layouts = [(layout.ranges, self._choices), *self._layouts[: MAX_FOUND - 1]]
        return new

    def _addends(
        self,
        share: Callable[[CellRange], RingShare],
        ranges: Sequence[CellRange],
        pieces: Sequence[slice],
        lengths: NDArray[np.int64],
        dealer: int,
    ) -> Elements:
        """This party's addends of a dealer's cells: of each range a piece, of so many cells. In a dry run all are blank."""
        if not ranges:
            return np.empty(0, np.uint32)
        first = addend_of(self._trio, share(ranges[0]), dealer)
        if isinstance(first, Blank):
            return blank(int(lengths.sum()), first.dtype)
        others = zip(ranges[1:], pieces[1:], strict=True)
        parts = (addend_of(self._trio, share(of), dealer)[piece] for of, piece in others)
        return np.concatenate([first[pieces[0]], *parts])

    def _with_shared_ranges(self, answers: Answers, new: Set[CellRange]) -> list[Flags]:
        """Of each dealer, the compared cells, and all cells of new ranges that share the bits of all."""
        layout, flags = answers.layout, [answers.nonzero[place] for place in answers.layout.places]
        if not new:
            return flags
        compared = np.zeros(len(layout.ranges), np.int64)
        numbers = [np.array([number for number, _ in owned], np.intp) for owned in layout.slices]
        for dealer, (part, of) in enumerate(zip(flags, numbers, strict=True)):
            np.add.at(compared, of, layout.slice_sums(dealer, part, np.int64))
        whole = shares_all(compared, layout.range_cells)
        if len(new) < len(layout.ranges):
            whole &= np.fromiter((cells in new for cells in layout.ranges), np.bool_, len(layout.ranges))
        return [
            part | np.repeat(whole[of], counts)
            for part, of, counts in zip(flags, numbers, layout.slice_cells, strict=True)
        ]

    def _share(self, flags: Sequence[Flags]) -> None:
        """Share the bits of those of these cells whose bits are not shared yet."""
        stores, choices = self._stores, self._choices
        fresh = [
            part & ~choice.take(store.has_bits)
            for part, choice, store in zip(flags, choices, stores, strict=True)
        ]
        if not any(part.any() for part in fresh):
            return
        addends = [
            np.concatenate(
                [store.addends[:0], *(columns[new] for columns, new in choice.flagged(store.addends, part))]
            )
            for store, choice, part in zip(stores, choices, fresh, strict=True)
        ]
        for store, choice, part, bits in zip(
            stores, choices, fresh, share_bits(self._trio, addends, self._planes, self.quads), strict=True
        ):
            for columns, new in choice.flagged(store.has_bits, part):
                columns[new] = True
            store.complete = bool(store.has_bits.all())
            if store.evaluates:
                start = 0
                for columns, new in choice.flagged(store.bits, part):
                    count = columns[0, new].size
                    columns[:, new] = bits[:, start : start + count]
                    start += count
