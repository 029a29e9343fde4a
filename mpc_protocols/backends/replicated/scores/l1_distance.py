"""Sums of |x - c| with the sign folded into two local dot products (`docs/design/engine.md` 2.6), alike for
all three parties.

The cells are in three parts (`dealer`). In part t, d = x - c = a + b, where the dealer t knows a and both
evaluators know b: the public c is subtracted from the component that the dealer lacks, so it never needs c.
After the adder (`masked_sign`) the dealer inputs two columns, and |d| is a local dot product at the
evaluators. Cells whose public c is 0 need none of this (`bit_cache`). A batch (`add_l1_sums`; in a selection,
a group of `public.answers`) is computed at a time; the parts of all batches are added up before they are
reshared, one element per segment.

Cost over all three parties, a third of it by each: 2.5 (k-1) bits a cell for the sign (ripple) and 2K; k =
24, K = 32: 5.0 bytes. The shared bits of a, 1.5 (k-1) bits a cell, travel once per sharing and cell
(`share_bits`, 1.5 bytes). Rounds: ceil((k-1)/2) + 1 (ripple), 2 + ceil(log4((k-1)/2)) (tree), 3
(quads, for which the shared bits are 2.5 times as many).

Public bounds, asserted by the caller: |d| < 2^(k-1) in every cell and sum |d| < 2^K in every segment. Threat
model, masking and assumption: `dealer`. A dealer learns nothing of c but the number of its cells; nothing is
opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS, DealerRoles
from mpc_protocols.backends.replicated.scores.masked_sign import (
    Addends,
    Form,
    Packed,
    bit_rows,
    signs,
    steps,
    unpack,
)
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, bit_pieces, to_planes, words_for
from mpc_protocols.engine.blank import Blank, blank

ADDERS: tuple[Form, ...] = ("ripple", "tree", "quads")


@dataclass(frozen=True)
class DealerCells:
    """The cells of one dealer at one party.

    addend: (cells,) the dealer's a, an evaluator's b. bits: the evaluators' shares of a's bits
    (`masked_sign.share_bits`), cell by cell; at the dealer without columns. lengths: (segments,) how many
    consecutive cells belong to each segment; may be 0.
    quads: whether the bits are those of quads.
    """

    addend: Elements
    bits: Packed
    lengths: NDArray[np.int64]
    quads: bool = False

    def __post_init__(self) -> None:
        if int(self.lengths.sum()) != len(self.addend):
            raise ValueError(f"Segments of {int(self.lengths.sum())} cells do not cover {len(self.addend)}.")


def addend_of(trio: Trio, x: RingShare, dealer: int) -> Elements:
    """This party's addend of shared cells of the dealer t: x_t + x_{t+1} at the dealer t, x_{t+2} at both
    others."""
    if trio.me == dealer:
        return x.own + x.next
    return x.next if trio.left == dealer else x.own


def score_adder(cells: Sequence[int], planes: int, latency_bytes: int, quads: bool = False) -> Form:
    """The adder for parts of so many cells: the least rounds * latency_bytes + bytes of a party, alike at all
    parties. quads: whether the bits of quads are shared."""
    words = sum(map(words_for, cells))

    def cost(adder: Form) -> float:
        schedule = steps(planes, adder)
        sent = sum(2 * exchanged + dealt for exchanged, dealt in schedule) * 8 * words / DEALERS
        return len(schedule) * latency_bytes + sent

    return min(ADDERS if quads else ADDERS[:-1], key=cost)


def add_l1_sums(
    trio: Trio, cells: Sequence[DealerCells], planes: int, adder: Form | None, parts: Elements
) -> None:
    """Add this party's parts of the sums of |a + b| over each segment of a batch to `parts`, shape
    (segments,).

    The three parties' parts add up to the sums, but are no sharing before `reshare`. `adder` (None:
    `score_adder`) is the same at all parties. Memory: about 15 bytes a cell besides the cells given.
    """
    sizes = [len(part.addend) for part in cells]
    if not any(sizes):
        return
    quads = cells[0].quads
    adder = adder or score_adder(sizes, planes, trio.latency_bytes, quads)
    mine, first, second = trio.me, trio.left, trio.right
    roles = DealerRoles(trio, [words_for(size) for size in sizes])
    total = Addends(
        to_planes(cells[mine].addend, planes),
        np.empty((planes, roles.evaluated_words), np.uint64),
        np.empty((bit_rows(planes, quads), roles.evaluated_words), np.uint64),
    )
    for t, part in ((first, roles.first), (second, roles.second)):
        to_planes(cells[t].addend, planes, part(total.b))
        unpack(cells[t].bits, part(total.shares))
    _, opened = signs(
        roles, total, planes, adder, lambda mask: _send_columns(trio, roles, cells[mine].addend, mask)
    )
    if isinstance(cells[mine].addend, Blank):  # masks of a dry run may have content
        opened = blank(opened.shape, opened.dtype)
    for t, words in ((first, roles.first(opened)), (second, roles.second(opened))):
        ends = np.cumsum(cells[t].lengths)
        _add_terms(trio, roles, cells[t].addend, words, t == first, parts, ends - cells[t].lengths, ends)


def _send_columns(trio: Trio, roles: DealerRoles, addend: Elements, mask: Words) -> None:
    """At the dealer: the masked columns s = 1 - 2u and v = s a, piece by piece."""
    dtype = addend.dtype.type
    for piece, flip in bit_pieces(mask, len(addend), dtype):
        np.negative(flip, out=flip)  # all ones where s = -1
        columns = np.empty((2, len(flip)), dtype)
        roles.to_second.fill(columns)
        value = addend[piece] ^ flip
        value -= flip
        np.subtract(value, columns[1], out=columns[1])
        flip <<= dtype(1)
        flip += dtype(1)
        np.subtract(flip, columns[0], out=columns[0])
        trio.send(trio.right, columns)


def _add_terms(
    trio: Trio,
    roles: DealerRoles,
    addend: Elements,
    opened: Words,
    is_first: bool,
    parts: Elements,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """At an evaluator: add its part of |a + b|, t (v + s b), to the sums of the segments [starts, ends)."""
    dtype = addend.dtype.type
    for piece, flip in bit_pieces(opened, len(addend), dtype):
        if is_first:
            columns = trio.receive(trio.left, (2, len(flip)), dtype)
        else:
            columns = np.empty((2, len(flip)), dtype)
            roles.as_second.fill(columns)
        np.negative(flip, out=flip)  # all ones where t = -1
        terms = columns[0] * addend[piece]
        terms += columns[1]
        terms ^= flip
        terms -= flip
        inside = np.minimum(ends, piece.stop) - np.maximum(starts, piece.start)
        parts += sum_segments(terms, np.maximum(inside, 0))
