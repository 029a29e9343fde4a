"""Arithmetic modulo the prime p = 65,521 = 2^16 - 15 on arrays of two-byte elements.

    x 2^16 + y = 15 x + y                  so two foldings and a subtraction reduce any number below 2^32
    A^T B                                  in float64, exactly: a product is below 2^32, and MAX_ROWS of them below 2^49

Sums of t + 1 elements tell by their bits from 16 on how often p goes into them (`counts`). Purely local; the
time depends on sizes only, but for `uniform`, whose rejections depend on the stream alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.blank import Blank, blank
from mpc_protocols.engine.prg import Reader

PRIME: Final = (1 << 16) - 15
ELEMENT: Final = 2
"""Bytes of an element."""
MAX_ROWS: Final = PRIME - 1 - 15 * 4
"""Rows whose counts leave the room that `counts` needs, of up to nine parties."""
_PIECE = 1 << 14
"""Elements worked on together: they stay in the second-level cache."""
_MATRIX_ROWS = 4096
"""Rows converted to floats at a time."""

Residues = NDArray[np.uint16]


def uniform(reader: Reader, shape: tuple[int, ...]) -> Residues:
    """Uniform elements from a stream: two bytes each, those of at least p drawn again."""
    if reader.is_blank:
        return blank(shape, np.uint16)
    drawn = np.empty(shape, np.uint16)
    reader.fill(drawn)
    flat = drawn.reshape(-1)
    beyond = np.flatnonzero(flat >= PRIME)
    while beyond.size:
        again = np.empty(len(beyond), np.uint16)
        reader.fill(again)
        flat[beyond] = again
        beyond = beyond[again >= PRIME]
    return drawn


def reduced(values: NDArray[np.uint32]) -> Residues:
    """Numbers below 2^32 modulo p."""
    twice = _folded(_folded(values))  # below 2^16 + 2^8
    least: NDArray[np.uint32] = np.minimum(twice, twice - np.uint32(PRIME))
    return least.astype(np.uint16)


def combination(coefficients: Sequence[int], arrays: Sequence[Residues]) -> Residues:
    """sum of coefficient * array, of at most 2^11 arrays of one shape."""
    if any(isinstance(array, Blank) for array in arrays):
        return blank(arrays[0].shape, np.uint16)
    result = np.empty(arrays[0].shape, np.uint16)
    flat, parts = result.reshape(-1), [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    for start in range(0, len(flat), _PIECE):
        piece = slice(start, start + _PIECE)
        total = np.zeros(len(flat[piece]), np.uint32)
        for coefficient, part in zip(coefficients, parts, strict=True):
            total += _folded(part[piece].astype(np.uint32) * np.uint32(coefficient))
        flat[piece] = reduced(total)
    return result


def rowwise(a: Residues, b: Residues) -> Residues:
    """Row by row all products of an element of a with one of b: (rows, columns of a * columns of b)."""
    rows, shape = len(a), (len(a), a.shape[1] * b.shape[1])
    if isinstance(a, Blank) or isinstance(b, Blank):
        return blank(shape, np.uint16)
    result = np.empty(shape, np.uint16)
    step = max(1, _PIECE // max(1, shape[1]))
    for start in range(0, rows, step):
        piece = slice(start, start + step)
        products = a[piece, :, np.newaxis].astype(np.uint32) * b[piece, np.newaxis, :]
        result[piece] = reduced(products).reshape(-1, shape[1])
    return result


def product(a: Residues, b: Residues) -> Residues:
    """A^T B of matrices of at most MAX_ROWS rows: (columns of a, columns of b)."""
    if isinstance(a, Blank) or isinstance(b, Blank):
        return blank((a.shape[1], b.shape[1]), np.uint16)
    total: NDArray[Any] = np.zeros((a.shape[1], b.shape[1]))
    for start in range(0, len(a), _MATRIX_ROWS):
        piece = slice(start, start + _MATRIX_ROWS)
        total += a[piece].T.astype(np.float64) @ b[piece].astype(np.float64)
    return (total.astype(np.uint64) % np.uint64(PRIME)).astype(np.uint16)


def lagrange(points: Sequence[int], at: int) -> list[int]:
    """The coefficients with which the values of a polynomial at these points, one more than its degree, give
    that at another."""
    coefficients = []
    for point in points:
        above = below = 1
        for other in points:
            if other != point:
                above = above * (at - other) % PRIME
                below = below * (point - other) % PRIME
        coefficients.append(above * pow(below, -1, PRIME) % PRIME)
    return coefficients


def _folded(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The same numbers modulo p, below 2^20."""
    result: NDArray[np.uint32] = values & np.uint32(0xFFFF)
    result += (values >> np.uint32(16)) * np.uint32(15)
    return result
