"""Transposition of 64 x 64 bit matrices, many at once: between planes of bits and rows of one transfer each.

Row t, word w of the result holds, at bit j, bit t of row j, word w of the argument; doing it twice gives the
argument back. Six rounds of masked swaps (Warren, "Hacker's Delight", 7-3) over pieces that stay in the
cache: 6 to 8 ns for 64 bits, 1 to 2 by compiled code (`kernel`).

Numbering. Transfer (t, w), bit t of word w of a plane, is cell  (t mod 32) 2W + 2w + (t div 32)  of `engine.bitslice`, whose
planes are the same words read as 32-bit ones; `cells_of` puts rows into that order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.kernel.layout import SWAPS
from mpc_protocols.backends.pair.transfers.kernel.library import kernel
from mpc_protocols.engine.blank import Blank, blank

Words = NDArray[np.uint64]

LANES = 64
_PIECE = 1024  # words of a row transposed at a time: 64 rows of 8 kB stay in the second-level cache


def transpose(matrix: Words) -> None:
    """Transpose every column of 64 words in place: C-contiguous uint64 of shape (64, words).

    By compiled code, if this process has any yet.
    """
    made = kernel(0)
    done = 0 if made is None else made.transpose(matrix)
    _transpose(matrix[:, done:])


def _transpose(matrix: Words) -> None:
    width = matrix.shape[1]
    block = np.empty((LANES, min(width, _PIECE)), np.uint64)
    scratch = np.empty((LANES // 2, block.shape[1]), np.uint64)
    for start in range(0, width, _PIECE):
        piece = slice(start, min(start + _PIECE, width))
        if piece.stop - piece.start == width:
            _swap(matrix, scratch)
        else:
            cells = block[:, : piece.stop - piece.start]
            cells[...] = matrix[:, piece]
            _swap(cells, scratch[:, : cells.shape[1]])
            matrix[:, piece] = cells


def _swap(block: Words, scratch: Words) -> None:
    width = block.shape[1]
    for step, mask in SWAPS:
        pairs = block.reshape(LANES // (2 * step), 2, step, width)
        low, high = pairs[:, 0], pairs[:, 1]
        moved = scratch.reshape(LANES // (2 * step), step, width)
        np.right_shift(low, np.uint64(step), out=moved)
        moved ^= high
        moved &= np.uint64(mask)
        high ^= moved
        moved <<= np.uint64(step)
        low ^= moved


def planes_of(rows: Words, planes: int) -> Words:
    """The low `planes` <= 128 bit planes of rows of shape (64, words, 2): shape (planes, words)."""
    if isinstance(rows, Blank):
        return blank((planes, rows.shape[1]), np.uint64)
    halves = 1 if planes <= LANES else 2
    matrix = np.ascontiguousarray(np.moveaxis(rows[:, :, :halves], 2, 1)).reshape(LANES, -1)
    transpose(matrix)
    words = rows.shape[1]
    ordered = matrix.reshape(LANES, halves, words).swapaxes(0, 1).reshape(LANES * halves, words)
    return np.ascontiguousarray(ordered[:planes])


def cells_of(rows: NDArray[Any], cells: int) -> NDArray[Any]:
    """The entries of the first `cells` cells of an array of shape (64, words, ..): shape (cells, ..), a copy."""
    words = rows.shape[1]
    lanes = rows.reshape(2, LANES // 2, words, *rows.shape[2:])
    ordered: NDArray[Any] = np.moveaxis(lanes, 0, 2).reshape(LANES * words, *rows.shape[2:])
    return ordered[:cells]
