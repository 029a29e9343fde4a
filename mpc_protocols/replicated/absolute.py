"""Sums of |x - c| with the sign folded into two local dot products (`engine.md` 2, `malicious.md` 4).

d = x - c = a + b, where P0 knows a = x_0 + x_1 and P1 and P2 know b = x_2 - c: the public c is subtracted from component 2,
so P0 never needs it. After the adder, the sign bit m = u ^ m_2 with u = m_0 ^ m_1 known to P0 and m_2 to P1 and P2. Let
s = 1 - 2u and t = 1 - 2 m_2. Then |d| = s t (a + b) = t (v + s b) with v = s a known to P0 (the same as `engine.md`'s
m*d = u a + m_2 b + u [b (1 - 2 m_2)] + [a (1 - 2u)] m_2, summed up as d - 2 m d). P0 inputs s and v:

    s = s' + s'', v = v' + v'':   s', v' = F(k_0) known to P0 and P2,   s'', v'' sent to P1
    P1:  sum t (v'' + s'' b)      P2:  sum t (v' + s' b)      P0:  0        one zero-masked reshare per segment

Sent per cell: k + 2K + k-1 bits by P0, k-1 by P1 and by P2 (k = 24, K = 32: 13.9 / 2.9 / 2.9 bytes), and one element
per segment. Rounds: k + 2 (ripple): planes, k-1 ANDs, the inputs, the reshare.

Cells whose public c is 0 need none of this: |x - 0| = x is a local sum. The planes of a could be shared once per run; they
are shared anew each time, because the cells with c != 0 change from step to step and planes cannot be thinned out.

Public bounds, asserted by the caller: |d| < 2^(k-1) in every cell and sum |d| < 2^K in every segment. Threat model, masking
and assumption: `trio`. P0 learns nothing of c but the number of cells; nothing is opened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.bitslice import Elements, bit_pieces, words_for
from mpc_protocols.replicated.boolean import BitShare
from mpc_protocols.replicated.ring import RingShare, reshare, sum_segments
from mpc_protocols.replicated.sign import Adder, adder_for, share_operands, sign_of
from mpc_protocols.replicated.trio import Trio

BATCH = 1 << 20
"""Cells that go through the adder together: bounds the memory at about 20 bytes a cell of one batch."""


def score_adder(cells: int, planes: int, round_bytes: int, batch: int = BATCH) -> Adder:
    """The adder of `absolute_sums` for so many cells."""
    return adder_for(planes - 1, words_for(cells), round_bytes, -(-cells // batch))


def absolute_sums(trio: Trio, known: Elements, lengths: NDArray[np.int64], planes: int, adder: Adder | None = None,
                  batch: int = BATCH) -> RingShare:
    """Segment sums of |a + b|: `known` is a at P0 and b at P1 and P2, of shape (cells,); `lengths` covers the cells.

    Result: one shared element per segment. `batch` and `adder` (None: `score_adder`) are the same at all parties.
    """
    adder = adder or score_adder(len(known), planes, trio.round_bytes, batch)
    if int(lengths.sum()) != len(known):
        raise ValueError(f"segments of {int(lengths.sum())} cells do not cover {len(known)}")
    parts = np.zeros(len(lengths), known.dtype)
    ends = np.cumsum(lengths)
    for start in range(0, len(known), batch):
        part = known[start:start + batch]
        negative = sign_of(trio, share_operands(trio, part, planes), planes, adder)
        if trio.me == 0:
            _send_columns(trio, part, negative)
            trio.turn()
        else:
            trio.turn()
            _add_terms(trio, part, negative, parts, ends - lengths - start, ends - start)
    return reshare(trio, parts)


def _send_columns(trio: Trio, known: Elements, negative: BitShare) -> None:
    """At P0: the masked columns s = 1 - 2u and v = s a, piece by piece."""
    dtype = known.dtype.type
    masks = trio.own_reader(trio.operation())
    for piece, flip in bit_pieces(negative.own ^ negative.next, len(known), dtype):
        np.negative(flip, out=flip)  # all ones where s = -1
        columns = np.empty((2, len(flip)), dtype)
        masks.fill(columns)
        value = known[piece] ^ flip
        value -= flip
        np.subtract(value, columns[1], out=columns[1])
        flip <<= dtype(1)
        flip += dtype(1)
        np.subtract(flip, columns[0], out=columns[0])
        trio.send(1, columns)


def _add_terms(trio: Trio, known: Elements, negative: BitShare, parts: Elements, starts: NDArray[np.int64],
               ends: NDArray[np.int64]) -> None:
    """At P1 and P2: add this party's part of |a + b|, t (v + s b), to the sums of the segments [starts, ends)."""
    dtype = known.dtype.type
    masks = trio.next_reader(trio.operation())
    for piece, flip in bit_pieces(negative.next if trio.me == 1 else negative.own, len(known), dtype):
        if trio.me == 1:
            columns = trio.receive(0, (2, len(flip)), dtype)
        else:
            columns = np.empty((2, len(flip)), dtype)
            masks.fill(columns)
        np.negative(flip, out=flip)  # all ones where t = -1
        terms = columns[0] * known[piece]
        terms += columns[1]
        terms ^= flip
        terms -= flip
        inside = np.minimum(ends, piece.stop) - np.maximum(starts, piece.start)
        parts += sum_segments(terms, np.maximum(inside, 0))
