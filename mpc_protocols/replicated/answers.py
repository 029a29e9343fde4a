"""The model's rounded answers on their way from P1, who fits the model, to P0 and P2 (DESIGN 3, 4).

The public part of a score, c, is subtracted from the component of a cell that its dealer lacks (`dealing`): so the two others
need c there, and the dealer only whether it is 0, for those cells take no part in the sign protocol. Answers are
post-processing of released counts; they travel compactly, not secretly:

    the bitmap      one bit per cell of all kept candidates in order, 1 where c is not 0, first cell in the highest bit; padding
                    bits are 0
    the own part    hash and sums of the answers of the cells that the receiver deals for (`thirds.Part`): 32 bytes, and 8 for
                    each candidate, little-endian
    the others'     a byte for each cell that is not 0 and not the receiver's, c itself below 255 and else 255; then 4
                    little-endian bytes of c for each byte of 255

Most counts of a table that is worth a secure selection are small: this is as compact as zlib (Adult: 75 kB for 108,710 cells,
65 by zlib) in a third of the time. A peer's sizes are not trusted: the length is limited beforehand, and a message that does not
have exactly the length that its bitmap and its bytes give aborts. Ranges, sums and the hash that was announced are checked by
`PublicState.check_answers`; that all have the same bitmap, by what the parties compare before they compute (`party`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mpc_protocols import thirds
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Handle

Flags = NDArray[np.bool_]
_ESCAPE = 255


@dataclass(frozen=True)
class Answers:
    """What one party has of the kept candidates' answers, all candidates one after the other.

    cells: uint32, 0 where this party deals and does not know better. compared: bool, where c is not 0. lengths: cells of each
    candidate. unseen: the part of this party's own cells; None if it knows all.
    """

    cells: NDArray[np.uint32]
    compared: Flags
    lengths: Sequence[int]
    unseen: thirds.Part | None

    @property
    def values(self) -> list[NDArray[np.uint32]]:
        """`cells` of each candidate, as views."""
        return [self.cells[end - length:end] for length, end in zip(self.lengths, accumulate(self.lengths), strict=True)]

    def bitmap(self) -> bytes:
        """`compared` as it travels."""
        return np.packbits(self.compared).tobytes()


def complete(answers: Sequence[NDArray[np.int64]]) -> Answers:
    """The rounded answers at the party that knows them; integers in [0, 2^32)."""
    flat = np.concatenate([np.empty(0, np.int64), *answers])
    if flat.size and not 0 <= int(flat.min()) <= int(flat.max()) < 1 << 32:
        raise ValueError("rounded answers must lie in [0, 2^32)")
    cells = flat.astype(np.uint32)
    return Answers(cells, cells != 0, [len(answer) for answer in answers], None)


def encoded_limit(cells: int, candidates: int) -> int:
    """The most bytes that `encode` gives."""
    return bitmap_size(cells) + _part_size(candidates) + 5 * cells


def encode(answers: Answers, handles: Sequence[Handle], receiver: int) -> bytes:
    """All answers for one of the other computing parties."""
    own = thirds.part(receiver, handles, answers.values)
    sent = answers.compared & _seen(receiver, handles, answers.lengths)
    low = np.minimum(answers.cells, _ESCAPE).astype(np.uint8)[sent]
    wide = low == _ESCAPE
    high = answers.cells[sent][wide] if wide.any() else answers.cells[:0]
    return b"".join((answers.bitmap(), own.content, own.sums.astype("<i8").tobytes(), low.tobytes(),
                     high.astype("<u4").tobytes()))


def decode(payload: bytes | memoryview, handles: Sequence[Handle], lengths: Sequence[int], me: int) -> Answers:
    """The answers of candidates of these lengths at party `me`. Raises `ProtocolAborted` on anything odd."""
    cells, fixed = sum(lengths), bitmap_size(sum(lengths)) + _part_size(len(lengths))
    raw = np.frombuffer(payload, np.uint8)
    if len(raw) < fixed:
        raise ProtocolAborted("The leading party sent model answers that are cut off.")
    nonzero = read_bitmap(raw[:bitmap_size(cells)], cells)
    own, raw = raw[bitmap_size(cells):fixed], raw[fixed:]
    sent = nonzero & _seen(me, handles, lengths)
    count = int(np.count_nonzero(sent))
    low = raw[:count]
    wide = low == _ESCAPE
    if len(raw) != count + 4 * np.count_nonzero(wide):
        raise ProtocolAborted(f"The leading party sent model answers that are not exactly {cells} cells.")
    values = low.astype(np.uint32)
    if len(raw) > count:
        values[wide] = np.frombuffer(raw[count:].tobytes(), "<u4")
    flat = np.zeros(cells, np.uint32)
    flat[sent] = values
    unseen = thirds.Part(own[:32].tobytes(), np.frombuffer(own[32:].tobytes(), "<i8").astype(np.int64))
    return Answers(flat, nonzero, lengths, unseen)


def bitmap_size(cells: int) -> int:
    """Bytes of the bitmap."""
    return -(-cells // 8)


def read_bitmap(payload: NDArray[np.uint8], cells: int) -> Flags:
    """Which cells are not 0: bool of shape (cells,). Raises `ProtocolAborted` if padding bits are set."""
    bits = np.unpackbits(payload)
    if bits[cells:].any():
        raise ProtocolAborted(f"The leading party sent a bitmap that is not exactly {cells} cells.")
    return bits[:cells].view(np.bool_)


def _part_size(candidates: int) -> int:
    return 32 + 8 * candidates


def _seen(party: int, handles: Sequence[Handle], lengths: Sequence[int]) -> Flags:
    """Cells for which `party` does not deal, all candidates one after the other."""
    seen = np.ones(sum(lengths), np.bool_)
    start = 0
    for handle, length in zip(handles, lengths, strict=True):
        for third, piece in thirds.pieces(handle, length):
            if third == party:
                seen[start:start + length][piece] = False
        start += length
    return seen
