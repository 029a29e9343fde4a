"""The bits of the addend that P0 knows of every shared cell, dealt once a run and proved.

As everywhere, x = a + b with a = x_0 + x_1 known to P0 and b = x_2 known to P1 and P2 (`sharing.sign`). P0
shares the low k bits of a: a stream F(k_0) with P2, the rest sent to P1. That these are the bits of x_0 + x_1
is proved like a product, with P0 as the prover, P2 as the left verifier, who holds x_0, and P1 as the right
one, who holds x_1. With the carries c = a ^ x_0 ^ x_1,

    c_0 = 0        c_{j+1} ^ x_0j = (x_0j ^ x_1j) (a_j ^ x_1j)             j = 0 .. k-2

are statements whose factors and result P2 and P1 hold XOR shares of; they hold for all j exactly if the dealt
bits are right. Answers of the model are subtracted from b, so a's bits are good for the whole run. k bits a
cell from P0, once; 1 round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proved.numbers import Summand
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words, from_planes, to_planes, words_for
from mpc_protocols.public.answers import CellRange

MAX_CACHED: Final = 1 << 21
"""Cells whose bits are kept; when more are dealt, the others are dropped and dealt anew when they are needed."""

Deal = Callable[[Trio, Transcript, RingShare, int], Summand]


def deal(trio: Trio, transcript: Transcript, x: RingShare, planes: int) -> Summand:
    """Shares of the low bits of a, cell by cell, noted for a proof: uint32 of shape (cells,)."""
    operation = trio.operation()
    cells, shape = len(x), (planes, words_for(len(x)))
    nothing = np.zeros(cells, np.uint32)
    if trio.me == 0:
        mask = trio.own_mask(shape, np.uint64, operation)
        rest = to_planes(x.own + x.next, planes) ^ mask
        trio.send(1, rest)
        trio.turn()
        first, second = to_planes(x.own, planes), to_planes(x.next, planes)
        dealt = mask ^ rest
        transcript.proving.note(*_proved(first ^ second, dealt ^ second, dealt, first ^ second, first))
        shares = Summand(from_planes(mask, cells), from_planes(rest, cells))
    else:
        trio.turn()
        none = np.zeros(shape, np.uint64)
        if trio.me == 1:
            rest = trio.receive(0, shape, np.uint64)
            second = to_planes(x.own, planes)
            transcript.right.note(*_proved(second, rest ^ second, rest, second, none))
            shares = Summand(from_planes(rest, cells), nothing)
        else:
            mask = trio.next_mask(shape, np.uint64, operation)
            first = to_planes(x.next, planes)
            transcript.left.note(*_proved(first, mask, mask, first, first))
            shares = Summand(nothing, from_planes(mask, cells))
    transcript.gates += 64 * planes * shape[1]
    return shares


def _proved(
    mixed: Words, factor: Words, dealt: Words, both: Words, first: Words
) -> tuple[Words, Words, Words]:
    """X, Y and W of one cell's statements, plane by plane; c = dealt ^ both; the last statement is 0 * 0 =
    c_0."""
    carries = dealt ^ both
    x, y, w = np.zeros_like(dealt), np.zeros_like(dealt), np.empty_like(dealt)
    x[:-1], y[:-1] = mixed[:-1], factor[:-1]
    w[:-1] = carries[1:] ^ first[:-1]
    w[-1] = carries[0]
    return x.reshape(1, -1), y.reshape(1, -1), w.reshape(-1)


class AddendCache:
    """Shares of the bits of P0's addends, by range of cells, kept over the run."""

    def __init__(self, deal: Deal = deal) -> None:
        """deal: how bits are dealt; a dry run counts it only."""
        self._deal = deal
        self._kept: dict[CellRange, tuple[int, Summand]] = {}

    def bits(
        self, trio: Trio, transcript: Transcript, wanted: Sequence[tuple[CellRange, RingShare]], planes: int
    ) -> list[Summand]:
        """The bits of ranges, dealt if they are not kept: 1 round for all together, 0 if there are none to
        deal."""
        missing = {of: x for of, x in wanted if self._kept.get(of, (0,))[0] < planes}
        kept = sum(of.cells for of in self._kept) + sum(of.cells for of in missing)
        if missing:
            if kept > MAX_CACHED:
                missing, self._kept = dict(wanted), {}
            together = RingShare(
                *(np.concatenate([getattr(x, side) for x in missing.values()]) for side in ("own", "next"))
            )
            dealt = self._deal(trio, transcript, together, planes)
            start = 0
            for of in missing:
                piece = slice(start, start + of.cells)
                self._kept[of] = planes, Summand(dealt.own[piece], dealt.next[piece])
                start += of.cells
        return [self._kept[of][1] for of, _ in wanted]
