"""Sums of |x - c| in bits: nothing is turned into a ring element, every product is an AND that is proved.

A cell's difference is d = a + b modulo 2^k, a known to P0 and b = x_2 - c to P1 and P2 (`addends`). The carry
chain, a ripple or a prefix tree, gives all bits of d; s is the highest. Then

    |d| = (d ^ s) + s        bit by bit, the second s as a bit of weight 1

and the numbers of a candidate are added up by full adders (`addition`), 64 cells to a word, then the 64
lanes. ANDs: k - 1 a cell for the chain, or about 0.9 k lg k for its tree, and about k for the sum. Rounds:
k - 1 or 1 + lg k, then lg (n / 64) for n cells of the largest candidate and 7 for the lanes. Where c is 0, |x - c| =
x is added as a ring share, without a message.

Threat model: `gates`. Public bounds, asserted by the caller: |d| < 2^(k-1), sums below 2^32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.addends import AddendCache
from mpc_protocols.backends.replicated.proved.addition import add_lanes, add_up, carries_of, compress
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.engine.bitwise.bits import concatenate, on_parts
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_planes
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.by_shape import is_dry
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.grouped_sums import CellsOf, GroupedL1Sums
from mpc_protocols.public.answers import Answers, DealerLayout

WIDTH = 32
"""Bits of a sum."""


class ProvedL1Sums(GroupedL1Sums[ProvedGates, RingShare, SummedNumbers]):
    """See `engine.interface.L1Sums`."""

    form = "bits"

    def __init__(
        self,
        gates: ProvedGates,
        cells: CellsOf[RingShare],
        answers: AnswerExchange,
        planes: int,
        ring: UInt,
        addends: AddendCache,
    ) -> None:
        super().__init__(gates, cells, answers, planes, ring)
        self._addends = addends

    def compute(self) -> SummedNumbers:
        count = self._answers.candidates
        own, following = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        summands: list[Summand] = []
        for layout, answers in self._answers:
            for of in self._group(layout, answers, own, following):
                whole = np.zeros((2, count), np.uint32)
                whole[:, layout.candidates] = of.own, of.next
                summands.append(Summand(*whole))
        sums = SummedNumbers(
            np.uint32, np.zeros(count, np.uint32), RingShare(own, following), tuple(summands)
        )
        if self._ring is np.uint32:
            return sums
        [total] = add_up(self._gates, sums).summands
        wide = total.map(lambda part: part.astype(np.uint64))
        return SummedNumbers(np.uint64, np.zeros(count, np.uint64), None, (wide,))

    def _group(
        self, layout: DealerLayout, answers: Answers, own: Elements, following: Elements
    ) -> list[Summand]:
        """Add the cells with c = 0 to own and following; two summands a candidate of the group for the
        others."""
        compared, dry = [], is_dry(self._gates)
        for q, of, c in zip(layout.owners, layout.ranges, layout.by_range(answers.cells), strict=True):
            x, zero = self._cells(of), c == 0
            if not dry:
                own[q : q + 1] += x.own[zero].sum(dtype=np.uint32)
                following[q : q + 1] += x.next[zero].sum(dtype=np.uint32)
            if not zero.all():
                compared.append((q - layout.candidates.start, of, x, np.flatnonzero(~zero), c))
        if not compared:
            return []
        gates, trio = self._gates, self._gates.trio
        bits = self._addends.bits(
            trio, gates.transcript, [(of, x) for _, of, x, _, _ in compared], self._planes
        )
        lengths = np.zeros(layout.candidates.stop - layout.candidates.start, np.int64)
        parts = []
        for (q, _, x, cells, c), a in zip(compared, bits, strict=True):
            lengths[q] += len(cells)
            if dry:
                parts.append([blank(len(cells), np.uint32)] * 2)
                continue
            b = [a.own[cells], a.next[cells]]
            if trio.me == 1:
                b[1] = x.next[cells] - c[cells]
            elif trio.me == 2:
                b[0] = x.own[cells] - c[cells]
            parts.append(b)
        self.signs += int(lengths.sum())
        mixed = _Lanes(lengths).planes(
            [np.concatenate(side) for side in zip(*parts, strict=True)], self._planes
        )
        return self._distances(mixed, lengths)

    def _distances(self, mixed: BitShare, lengths: NDArray[np.int64]) -> list[Summand]:
        """mixed: planes of a ^ b, (k, words), segment by segment in whole words."""
        gates = self._gates
        nothing = np.zeros_like(mixed.own)
        me = gates.trio.me  # a has components 0 and 1, b component 2
        first = BitShare(nothing if me == 2 else mixed.own, nothing if me == 1 else mixed.next)
        low = self._planes - 1
        carried = carries_of(gates, first[:low], mixed[:low])
        sign = mixed[low:] ^ carried[low - 1 :]
        numbers = concatenate([mixed[:1], mixed[1:low] ^ carried[: low - 1]]) ^ sign
        numbers = numbers.reshape(low, -1, 1)
        words = _words(lengths)
        ones = sign.reshape(-1, 1)
        numbers, counts, used = compress(gates, numbers, words, WIDTH, ones)
        left = words - used
        rest = np.repeat(np.cumsum(words) - left, left) + _within(left)
        numbers, counts = _joined(numbers, counts, ones[rest], left)
        return add_lanes(gates, numbers, counts, WIDTH, np.uint32)


class _Lanes:
    """Where the cells of consecutive segments stand when each segment fills whole words: (32, 2 words) lanes."""

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        columns = 2 * _words(lengths)
        self._columns = int(columns.sum())
        width = np.repeat(columns, lengths)
        lane, column = np.divmod(_within(lengths), np.maximum(width, 1))
        self._places = lane * self._columns + column + np.repeat(np.cumsum(columns) - columns, lengths)

    def planes(self, components: list[Elements], planes: int) -> BitShare:
        """XOR-shared integers of the cells as planes, (planes, words)."""
        parts: list[Words] = []
        for component in components:
            spread = np.zeros_like(component, shape=32 * self._columns)
            spread[self._places] = component
            parts.append(to_planes(spread, planes))
        return BitShare(*parts)


def _words(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Words of each segment."""
    return -(-lengths // 64)


def _within(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _joined(
    numbers: BitShare, counts: NDArray[np.int64], ones: BitShare, more: NDArray[np.int64]
) -> tuple[BitShare, NDArray[np.int64]]:
    """The numbers of each segment followed by bits that are added too, as numbers of one bit."""
    together = counts + more
    start = np.cumsum(together) - together
    places = np.repeat(start, counts) + _within(counts)
    others = np.repeat(start + counts, more) + _within(more)

    def join(planes: Words, single: Words) -> Words:
        out = np.zeros((len(planes), int(together.sum()), 1), np.uint64)
        out[:, places] = planes
        out[0, others] = single
        return out

    return on_parts(join, numbers, ones), together
