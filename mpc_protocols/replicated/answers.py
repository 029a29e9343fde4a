"""The model's rounded answers on their way from P1 to P2, and their zeros to P0 (DESIGN 3, 4).

The public part of a score, c, is subtracted from component 2, which P1 (who fits the model) and P2 hold: so P2 needs c, and P0
only the set of cells with c = 0, which take no part in the sign protocol. Answers are post-processing of released counts; they
travel compactly, not secretly:

    to P2   one byte, the width of an integer (1, 2 or 4 bytes), then the little-endian integers of all kept candidates in
            order, zlib-compressed
    to P0   one bit per cell, 1 where c is not 0, first cell in the highest bit; padding bits are 0

A peer's sizes are not trusted: the length of the compressed message is limited beforehand, decompression stops one byte after the
size that the public cell count gives, and anything that is not exactly one complete stream of that size aborts. Ranges,
sums and the hash that was announced are checked by `PublicState.check_answers`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted

_WIDTHS = {1: "<u1", 2: "<u2", 4: "<u4"}
_LEVEL = 1  # counts of a sparse table shrink well at any level


def encoded_limit(cells: int) -> int:
    """The most bytes that `encode` gives for so many cells."""
    return 1 + 4 * cells + 4 * cells // 1000 + 64


def encode(answers: Sequence[NDArray[np.int64]]) -> bytes:
    """The rounded answers of the kept candidates, integers in [0, 2^32), as P2 gets them."""
    flat = np.concatenate(answers)
    if flat.size and not 0 <= int(flat.min()) <= int(flat.max()) < 1 << 32:
        raise ValueError("rounded answers must lie in [0, 2^32)")
    largest = int(flat.max(initial=0))
    width = next(width for width in _WIDTHS if largest < 1 << 8 * width)
    return bytes([width]) + zlib.compress(flat.astype(_WIDTHS[width]).tobytes(), _LEVEL)


def decode(payload: bytes | memoryview, lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    """The answers as one int64 array per kept candidate, of these lengths. Raises `ProtocolAborted` on anything odd."""
    raw = bytes(payload)
    layout = _WIDTHS.get(raw[0]) if raw else None
    if layout is None:
        raise ProtocolAborted("The leading party sent model answers in an unknown format; check that all run the same version.")
    expected = sum(lengths) * raw[0]
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(raw[1:], expected + 1)
    except zlib.error:
        raise ProtocolAborted("The leading party sent model answers that cannot be decompressed.") from None
    if len(content) != expected or not stream.eof or stream.unused_data or stream.unconsumed_tail:
        raise ProtocolAborted(f"The leading party sent model answers that are not exactly {sum(lengths)} cells.")
    flat = np.frombuffer(content, layout).astype(np.int64)
    return np.split(flat, np.cumsum(lengths)[:-1])


def nonzero_bitmap(answers: Sequence[NDArray[np.int64]]) -> bytes:
    """Which cells of all kept candidates have c != 0, as P0 gets it."""
    return np.packbits(np.concatenate(answers) != 0).tobytes()


def bitmap_size(cells: int) -> int:
    """Bytes of `nonzero_bitmap`."""
    return -(-cells // 8)


def read_bitmap(payload: bytes | memoryview, cells: int) -> NDArray[np.bool_]:
    """Inverse of `nonzero_bitmap`: bool of shape (cells,). Raises `ProtocolAborted` if padding bits are set."""
    bits = np.unpackbits(np.frombuffer(payload, np.uint8))
    if len(bits) != 8 * bitmap_size(cells) or bits[cells:].any():
        raise ProtocolAborted(f"The leading party sent a bitmap that is not exactly {cells} cells.")
    return bits[:cells].astype(np.bool_)
