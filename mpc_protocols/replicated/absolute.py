"""Sums of |x - c| with the sign folded into two local dot products (`engine.md` 2, `malicious.md` 4), alike for all three
parties.

The cells are cut into thirds (`dealing`). In third t, d = x - c = a + b, where the dealer t knows a = x_t + x_{t+1} and the two
others know b = x_{t+2} - c: the public c is subtracted from the component that the dealer lacks, so it never needs c. After the
adder (`dealt_sign`) the sign is u ^ m with u known to the dealer and m to both evaluators. Let s = 1 - 2u and t = 1 - 2m. Then
|d| = s t (a + b) = t (v + s b) with v = s a known to the dealer (the same as `engine.md`'s m*d = u a + m_2 b + u [b (1 - 2
m_2)] + [a (1 - 2u)] m_2, summed up as d - 2 m d). The dealer inputs s and v, in the step in which the last carry is opened:

    s = s' + s'', v = v' + v'':   s', v' = F(k_t) of the dealer and the second evaluator, s'', v'' sent to the first
    first evaluator: sum t (v'' + s'' b)     second: sum t (v' + s' b)     dealer: 0       one zero-masked reshare per segment

Sent per cell over all three parties: 2.5 (k-1) bits for the sign (ripple) and 2K, a third of it by each party: k = 24, K = 32:
5.0 bytes; and one element per segment. The shared bits of a, 1.5 (k-1) bits a cell, travel once per sharing and cell
(`share_bits`, 1.5 bytes). Rounds: ceil((k-1)/2) + 1 (ripple), 2 + ceil(log2((k-1)/2)) (tree).

Cells whose public c is 0 need none of this: |x - 0| = x is a sum of what the dealer and the first evaluator know, which they
add to their parts before the reshare (`compared`).

Public bounds, asserted by the caller: |d| < 2^(k-1) in every cell and sum |d| < 2^K in every segment. Threat model, masking
and assumption: `dealing`. A dealer learns nothing of c but the number of its cells; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.bitslice import Elements, Words, bit_pieces, to_planes, words_for
from mpc_protocols.replicated.dealing import Dealing
from mpc_protocols.replicated.dealt_sign import Packed, Sum, bit_rows, signs, steps, unpack
from mpc_protocols.replicated.ring import RingShare, reshare, sum_segments
from mpc_protocols.replicated.sign import Adder
from mpc_protocols.replicated.trio import Trio
from mpc_protocols.thirds import THIRDS

BATCH = 1 << 20
"""Cells that go through the adder together: bounds the memory at about 20 bytes a cell of one batch."""
ADDERS: tuple[Adder, ...] = ("ripple", "tree")


@dataclass(frozen=True)
class Third:
    """One third of the cells at one party.

    known: (cells,) the dealer's a, an evaluator's b. bits: the evaluators' shares of a's bits (`dealt_sign.share_bits`), cell by
    cell; at the dealer without columns. lengths: (segments,) how many consecutive cells belong to each segment; may be 0.
    """

    known: Elements
    bits: Packed
    lengths: NDArray[np.int64]

    def __post_init__(self) -> None:
        if int(self.lengths.sum()) != len(self.known):
            raise ValueError(f"segments of {int(self.lengths.sum())} cells do not cover {len(self.known)}")


def known_of(trio: Trio, x: RingShare, third: int) -> Elements:
    """What this party knows of shared cells of third t: x_t + x_{t+1} at the dealer t, x_{t+2} at both others."""
    if trio.me == third:
        return x.own + x.next
    return x.next if trio.left == third else x.own


def batches(cells: Sequence[int], batch: int = BATCH) -> list[list[int]]:
    """Cells of each third in every batch of `absolute_sums`."""
    size = -(-batch // THIRDS)
    return [[max(0, min(size, third - start)) for third in cells] for start in range(0, max(cells), size)]


def score_adder(cells: Sequence[int], planes: int, round_bytes: int, batch: int = BATCH) -> Adder:
    """The adder for thirds of so many cells: the least rounds * round_bytes + bytes of a party, alike at all parties."""
    words, runs = sum(map(words_for, cells)), len(batches(cells, batch))

    def cost(adder: Adder) -> float:
        schedule = steps(planes, adder)
        sent = sum(2 * exchanged + dealt for exchanged, dealt in schedule) * 8 * words / THIRDS
        return len(schedule) * runs * round_bytes + sent

    return min(ADDERS, key=cost)


def absolute_sums(trio: Trio, thirds: Sequence[Third], planes: int, adder: Adder | None = None, batch: int = BATCH,
                  others: Elements | None = None) -> RingShare:
    """Sums of |a + b| over each segment of the three thirds together: one shared element per segment.

    `batch` and `adder` (None: `score_adder`) are the same at all parties. others: (segments,) this party's part of what is
    added to the sums; None: nothing.
    """
    cells = [len(third.known) for third in thirds]
    adder = adder or score_adder(cells, planes, trio.round_bytes, batch)
    parts = np.zeros(len(thirds[0].lengths), thirds[0].known.dtype)
    if others is not None:
        parts += others
    done = [0] * THIRDS
    for sizes in batches(cells, batch):
        pieces = [slice(start, start + size) for start, size in zip(done, sizes, strict=True)]
        _add_batch(trio, thirds, pieces, planes, adder, parts)
        done = [piece.stop for piece in pieces]
    return reshare(trio, parts)


def _add_batch(trio: Trio, thirds: Sequence[Third], pieces: Sequence[slice], planes: int, adder: Adder, parts: Elements) -> None:
    """Add this party's parts of the cells `pieces` of each third to the sums of their segments."""
    mine, first, second = trio.me, trio.left, trio.right
    dealing = Dealing(trio, [words_for(piece.stop - piece.start) for piece in pieces])
    known = [third.known[piece] for third, piece in zip(thirds, pieces, strict=True)]
    total = Sum(to_planes(known[mine], planes), np.empty((planes, dealing.evaluated), np.uint64),
                np.empty((bit_rows(planes), dealing.evaluated), np.uint64))
    for t, part in ((first, dealing.first), (second, dealing.second)):
        to_planes(known[t], planes, part(total.b))
        unpack(thirds[t].bits[:, pieces[t]], part(total.shares))
    _, opened = signs(dealing, total, planes, adder, lambda mask: _send_columns(trio, dealing, known[mine], mask))
    for t, words in ((first, dealing.first(opened)), (second, dealing.second(opened))):
        ends = np.cumsum(thirds[t].lengths) - pieces[t].start
        _add_terms(trio, dealing, known[t], words, t == first, parts, ends - thirds[t].lengths, ends)


def _send_columns(trio: Trio, dealing: Dealing, known: Elements, mask: Words) -> None:
    """At the dealer: the masked columns s = 1 - 2u and v = s a, piece by piece."""
    dtype = known.dtype.type
    for piece, flip in bit_pieces(mask, len(known), dtype):
        np.negative(flip, out=flip)  # all ones where s = -1
        columns = np.empty((2, len(flip)), dtype)
        dealing.to_second.fill(columns)
        value = known[piece] ^ flip
        value -= flip
        np.subtract(value, columns[1], out=columns[1])
        flip <<= dtype(1)
        flip += dtype(1)
        np.subtract(flip, columns[0], out=columns[0])
        trio.send(trio.right, columns)


def _add_terms(trio: Trio, dealing: Dealing, known: Elements, opened: Words, is_first: bool, parts: Elements,
               starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """At an evaluator: add its part of |a + b|, t (v + s b), to the sums of the segments [starts, ends) of this batch."""
    dtype = known.dtype.type
    for piece, flip in bit_pieces(opened, len(known), dtype):
        if is_first:
            columns = trio.receive(trio.left, (2, len(flip)), dtype)
        else:
            columns = np.empty((2, len(flip)), dtype)
            dealing.as_second.fill(columns)
        np.negative(flip, out=flip)  # all ones where t = -1
        terms = columns[0] * known[piece]
        terms += columns[1]
        terms ^= flip
        terms -= flip
        inside = np.minimum(ends, piece.stop) - np.maximum(starts, piece.start)
        parts += sum_segments(terms, np.maximum(inside, 0))
