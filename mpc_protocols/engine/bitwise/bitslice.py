"""Bit planes: 64 cells to a word, so that one machine instruction evaluates 64 gates.

A batch of n cells is padded to a multiple of 64. Plane j holds bit j of every cell in `n/64` words of 64
bits. Which bit of a plane belongs to which cell is free as long as all parties agree; the order here makes
the transposition of integers to planes pure vector work without a single strided byte: read a plane as W =
n/32 words of 32 bits, then

    bit t of 32-bit word w  =  cell t*W + w.

The 32 rows of W cells are transposed by five rounds of masked swaps (Hacker's Delight 7-3), in pieces that
stay in cache, 3 to 5 ns a cell. No loop runs over cells. Assumes a little-endian machine, as the wire's
integers do.

Nothing here knows what is secret: the running time depends on sizes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.blank import Blank, blank

Words = NDArray[np.uint64]
Elements = NDArray[np.unsignedinteger[Any]]
UInt = type[np.unsignedinteger[Any]]

_LANES = 32
_PIECE = 2048  # 32-bit words of a row transposed at a time: 32 rows x 8 kB stay in the second-level cache
_PIECE_CELLS = 1 << 15  # cells whose bits are spread out at a time
_SWAPS = ((16, 0x0000FFFF), (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555))
_SHIFTS = np.arange(_LANES, dtype=np.uint32).reshape(-1, 1)


def words_for(cells: int) -> int:
    """64-bit words of one plane of `cells` cells."""
    return -(-cells // 64)


def to_planes(values: Elements, planes: int, out: Words | None = None) -> Words:
    """The low `planes` bit planes of unsigned values of shape (n,): shape (planes, words_for(n)); padding is
    0.

    out: where to put them, of that shape; its rows may lie apart.
    """
    if planes > 8 * values.dtype.itemsize:
        raise ValueError(f"{values.dtype} values have no {planes} bit planes.")
    count = len(values)
    if isinstance(values, Blank):
        return blank((planes, words_for(count)), np.uint64) if out is None else out
    row = 2 * words_for(count)
    if out is None:
        out = np.empty((planes, row // 2), np.uint64)
    if planes > _LANES:
        to_planes(values.astype(np.uint32), _LANES, out[:_LANES])
        to_planes((values >> np.uint64(_LANES)).astype(np.uint32), planes - _LANES, out[_LANES:])
        return out
    full = count // max(row, 1)  # rows without padding
    rows = values[: full * row].reshape(full, row)
    tail = np.zeros((_LANES - full, row), np.uint32)
    tail.reshape(-1)[: count - full * row] = values[full * row :]
    lanes = out.view(np.uint32)
    block, scratch = (
        np.empty((_LANES, min(row, _PIECE)), np.uint32),
        np.empty((_LANES // 2, min(row, _PIECE)), np.uint32),
    )
    for start in range(0, row, _PIECE):
        piece = slice(start, min(start + _PIECE, row))
        width = piece.stop - start
        cells = block[:, :width]
        cells[:full] = rows[
            :, piece
        ]  # uint64 values are cut to their low 32 bits, which hold all the planes asked for
        cells[full:] = tail[:, piece]
        _transpose(cells, planes, scratch[:, :width])
        lanes[:, piece] = cells[:planes]
    return out


def in_words(values: NDArray[Any]) -> NDArray[Any]:
    """Values in rows of which words [a, b) of all planes hold the columns [2a, 2b): (n,) to (32, 2
    words_for(n)), padded by 0.

    So `planes[:, a:b]` are the planes of `in_words(values)[:, 2 * a : 2 * b].reshape(-1)`.
    """
    if isinstance(values, Blank):
        return blank((_LANES, 2 * words_for(len(values))), values.dtype)
    rows: NDArray[Any] = np.zeros((_LANES, 2 * words_for(len(values))), values.dtype)
    rows.reshape(-1)[: len(values)] = values
    return rows


def from_planes(planes: Words, cells: int) -> NDArray[np.uint32]:
    """Inverse of `to_planes` for up to 32 planes of shape (planes, words_for(cells)): values of shape
    (cells,)."""
    if isinstance(planes, Blank):
        return blank(cells, np.uint32)
    lanes = planes.view(np.uint32)
    row = lanes.shape[1]
    values = np.empty((_LANES, row), np.uint32)
    for start in range(0, row, _PIECE):
        piece = slice(start, min(start + _PIECE, row))
        rows = np.zeros((_LANES, piece.stop - start), np.uint32)
        rows[: len(lanes)] = lanes[:, piece]
        _transpose(rows, _LANES, np.empty_like(rows[: _LANES // 2]))
        values[:, piece] = rows
    return values.reshape(-1)[:cells]


def _transpose(block: NDArray[np.uint32], planes: int, scratch: NDArray[np.uint32]) -> None:
    """In place: row j < planes holds, at bit t, bit j of what row t held. Each step goes on with the rows
    that lead there."""
    width, count = block.shape[1], _LANES
    for step, mask in _SWAPS:
        pairs = block[:count].reshape(count // (2 * step), 2, step, width)
        low, high = pairs[:, 0], pairs[:, 1]
        moved = scratch[: count // 2].reshape(count // (2 * step), step, width)
        np.right_shift(low, np.uint32(step), out=moved)
        moved ^= high
        moved &= np.uint32(mask)
        high ^= moved
        moved <<= np.uint32(step)
        low ^= moved
        count = -(-planes // step) * step


def to_bits(plane: Words, cells: int, dtype: type[np.unsignedinteger[Any]] = np.uint32) -> Elements:
    """The 0/1 values of one plane (or several: leading axes are kept), one element per cell: shape (...,
    cells)."""
    if isinstance(plane, Blank):
        return blank((*plane.shape[:-1], cells), dtype)
    lanes = plane.view(np.uint32)[..., np.newaxis, :] >> _SHIFTS
    lanes &= np.uint32(1)
    bits: Elements = lanes.reshape(*plane.shape[:-1], -1)[..., :cells]
    return bits if dtype is np.uint32 else bits.astype(dtype)


def piece_lengths(cells: int) -> list[int]:
    """Cells of each piece of `bit_pieces`."""
    row = 2 * words_for(cells)
    step = row * max(1, _PIECE_CELLS // max(row, 1))
    return [min(step, cells - start) for start in range(0, cells, step)] if cells else []


def bit_pieces(
    plane: Words, cells: int, dtype: type[np.unsignedinteger[Any]]
) -> Iterator[tuple[slice, Elements]]:
    """`to_bits` of one plane in pieces that stay in cache: the cells of a piece, and their bits in a fresh
    array."""
    rows = plane.view(np.uint32)
    start = 0
    for length in piece_lengths(cells):
        lane = start // len(rows)
        lanes = rows >> _SHIFTS[lane : lane - (-length // len(rows))]
        lanes &= np.uint32(1)
        bits: Elements = lanes.reshape(-1)[:length]
        yield slice(start, start + length), bits if dtype is np.uint32 else bits.astype(dtype)
        start += length


def from_bits(bits: NDArray[Any]) -> Words:
    """Inverse of `to_bits`: 0/1 (or bool) values of shape (..., n) to planes (..., words_for(n)); padding is
    0."""
    cells = bits.shape[-1]
    if isinstance(bits, Blank):
        return blank((*bits.shape[:-1], words_for(cells)), np.uint64)
    row = 2 * words_for(cells)
    lanes = np.zeros((*bits.shape[:-1], row * _LANES), np.uint32)
    lanes[..., :cells] = bits
    lanes = lanes.reshape(*bits.shape[:-1], _LANES, row)
    lanes <<= _SHIFTS
    plane: Words = np.bitwise_or.reduce(lanes, axis=-2).view(np.uint64)
    return plane
