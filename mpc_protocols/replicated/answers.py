"""The model's rounded answers on their way from P1, who fits the model, to P0 and P2 (DESIGN 3, 4).

The public part of a score, c, is subtracted from the component of a cell that its dealer lacks, by the two others; every party is
an evaluator of two thirds of the cells and the dealer of one (`dealing`). Answers are post-processing of released counts, so
whoever sees all of them learns nothing; they travel compactly, not secretly, and every party checks all of them:

    the bitmap: one bit per cell of all kept candidates in order, 1 where c is not 0, first cell in the highest bit; padding
    bits are 0; then a byte for each cell that is not 0, c itself below 255 and else 255; then 4 little-endian bytes of c for
    each byte of 255

Most counts of a table that is worth a secure selection are small: this is as compact as zlib (Adult: 75 kB for 108,710 cells,
65 by zlib) in a third of the time. A peer's sizes are not trusted: the length is limited beforehand, and a message that does not
have exactly the length that its bitmap and its bytes give aborts. Ranges, sums and the hash that was announced are checked by
`PublicState.check_answers`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted

_ESCAPE = 255


def encoded_limit(cells: int) -> int:
    """The most bytes that `encode` gives for so many cells."""
    return bitmap_size(cells) + 5 * cells


def encode(answers: Sequence[NDArray[np.int64]]) -> bytes:
    """The rounded answers of the kept candidates, integers in [0, 2^32), as the two others get them."""
    flat = np.concatenate(answers)
    if flat.size and not 0 <= int(flat.min()) <= int(flat.max()) < 1 << 32:
        raise ValueError("rounded answers must lie in [0, 2^32)")
    nonzero = flat != 0
    values = flat[nonzero]
    low = np.minimum(values, _ESCAPE).astype(np.uint8)
    return b"".join((np.packbits(nonzero).tobytes(), low.tobytes(), values[low == _ESCAPE].astype("<u4").tobytes()))


def decode(payload: bytes | memoryview, lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    """The answers as one int64 array per kept candidate, of these lengths. Raises `ProtocolAborted` on anything odd."""
    cells = sum(lengths)
    raw = np.frombuffer(payload, np.uint8)
    nonzero = read_bitmap(raw[:bitmap_size(cells)], cells)
    raw = raw[bitmap_size(cells):]
    low = raw[:int(np.count_nonzero(nonzero))]
    wide = low == _ESCAPE
    if len(raw) != np.count_nonzero(nonzero) + 4 * np.count_nonzero(wide):
        raise ProtocolAborted(f"The leading party sent model answers that are not exactly {cells} cells.")
    values = low.astype(np.int64)
    values[wide] = raw[len(low):].view("<u4")
    flat = np.zeros(cells, np.int64)
    flat[nonzero] = values
    ends = np.cumsum(lengths)
    return [flat[end - length:end] for length, end in zip(lengths, ends, strict=True)]


def bitmap_size(cells: int) -> int:
    """Bytes of the bitmap."""
    return -(-cells // 8)


def read_bitmap(payload: bytes | memoryview | NDArray[np.uint8], cells: int) -> NDArray[np.bool_]:
    """Which cells are not 0: bool of shape (cells,). Raises `ProtocolAborted` if padding bits are set."""
    bits = np.unpackbits(np.frombuffer(payload, np.uint8))
    if len(bits) != 8 * bitmap_size(cells) or bits[cells:].any():
        raise ProtocolAborted(f"The leading party sent a bitmap that is not exactly {cells} cells.")
    return bits[:cells].astype(np.bool_)
