"""The model's rounded answers on their way from the leader, who fits the model, to the two others
(`docs/design/engine.md` 6).

The public part of a score, c, is subtracted from the component of a cell that its dealer lacks (`dealer`): so
the two others need c there, and the dealer only whether it is 0, for those cells take no part in the sign
protocol. Answers are post-processing of released counts; they travel compactly, not secretly, group by group,
cells in dealt order (`public.answers`):

    the bitmap      one bit per cell of the group, 1 where c is not 0, first cell in the highest bit; padding bits are 0
    the own part    hash and sums of the answers of the cells that the receiver deals for (`PartDigest`): 32 bytes, and 8 for
                    each candidate, little-endian
    the others'     a byte for each cell that is not 0 and not the receiver's, c itself below 255 and else 255; then 4
                    little-endian bytes of c for each byte of 255

Most counts of a table that is worth a secure selection are small: this is as compact as zlib (Adult: 75 kB
for 108,710 cells, 65 by zlib) in a third of the time. A peer's sizes are not trusted: the length is limited
beforehand, and a message that does not have exactly the length that its bitmap and its bytes give aborts.
Ranges, sums and the hash that was announced, of which the bitmap is a part, are checked by `AnswerChecker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.public.answers import Answers, DealerLayout, Flags, PartDigest

_ESCAPE = 255


def encoded_limit(layout: DealerLayout) -> int:
    """The most bytes that `encode` gives."""
    return _bitmap_size(layout.size) + _part_size(layout) + 5 * layout.size


def encode(answers: Answers, receivers: Sequence[int]) -> list[bytes]:
    """The answers of a group for each of these computing parties."""
    lows, highs = [], []
    for place in answers.layout.places:
        cells = answers.cells[place]
        cells = cells[cells != 0]
        wide = cells >= _ESCAPE
        highs.append(cells[wide].astype("<u4", copy=False).tobytes())
        cells[wide] = _ESCAPE
        lows.append(cells.astype(np.uint8).tobytes())
    return [
        b"".join(
            [
                answers.bitmap,
                answers.parts[receiver].content,
                answers.parts[receiver].sums.astype("<i8").tobytes(),
                *(of[dealer] for of in (lows, highs) for dealer in range(DEALERS) if dealer != receiver),
            ]
        )
        for receiver in receivers
    ]


def decode(payload: bytes | memoryview, layout: DealerLayout, me: int) -> Answers:
    """The answers of a group at party `me`. Raises `ProtocolAborted` on anything odd."""
    first, fixed = _bitmap_size(layout.size), _bitmap_size(layout.size) + _part_size(layout)
    raw = np.frombuffer(payload, np.uint8)
    if len(raw) < fixed:
        raise ProtocolAborted("The leading party sent model answers that are cut off.")
    nonzero = _read_bitmap(raw[:first], layout.size)
    own, raw = raw[first:fixed], raw[fixed:]
    others = [layout.places[dealer] for dealer in range(DEALERS) if dealer != me]
    counts = [int(np.count_nonzero(nonzero[place])) for place in others]
    wides = [int(np.count_nonzero(part == _ESCAPE)) for part in _split(raw[: sum(counts)], counts)]
    if len(raw) != sum(counts) + 4 * sum(wides):
        raise ProtocolAborted(
            f"The leading party sent model answers that are not exactly {layout.size} cells."
        )
    cells = np.zeros(layout.size, np.uint32)
    highs = np.frombuffer(raw[sum(counts) :].tobytes(), "<u4")
    for place, low, high in zip(
        others, _split(raw[: sum(counts)], counts), _split(highs, wides), strict=True
    ):
        values = low.astype(np.uint32)
        values[low == _ESCAPE] = high
        cells[place][nonzero[place]] = values
    withheld = PartDigest(own[:32].tobytes(), np.frombuffer(own[32:].tobytes(), "<i8").astype(np.int64))
    return Answers(layout, cells, nonzero, (me, withheld))


def _bitmap_size(cells: int) -> int:
    """Bytes of the bitmap."""
    return -(-cells // 8)


def _read_bitmap(payload: NDArray[np.uint8], cells: int) -> Flags:
    """Which cells are not 0: bool of shape (cells,). Raises `ProtocolAborted` if padding bits are set."""
    bits = np.unpackbits(payload)
    if bits[cells:].any():
        raise ProtocolAborted(f"The leading party sent a bitmap that is not exactly {cells} cells.")
    return bits[:cells].view(np.bool_)


def _part_size(layout: DealerLayout) -> int:
    return 32 + 8 * (layout.candidates.stop - layout.candidates.start)


def _split(values: NDArray[np.unsignedinteger], lengths: Sequence[int]) -> list[NDArray[np.unsignedinteger]]:
    """Consecutive pieces."""
    return [values[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]
