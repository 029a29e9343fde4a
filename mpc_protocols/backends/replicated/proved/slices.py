"""Integers as planes of bits and back, for several vectors at once: each vector's lanes are those of
`bitwise.bitslice`.

An XOR sharing of integers is the XOR sharing of their bits, so these act on each component by itself. Local.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, from_planes, to_planes, words_for

_LANES = 32


def planes_of(values: Elements, planes: int) -> Words:
    """Bit planes of vectors: (vectors, n) to (planes, vectors, words_for(n)); padding is 0."""
    vectors, count = values.shape
    row = 2 * words_for(count)
    padded = np.zeros((vectors, _LANES * row), values.dtype)
    padded[:, :count] = values
    lanes = np.ascontiguousarray(padded.reshape(vectors, _LANES, row).swapaxes(0, 1)).reshape(-1)
    return to_planes(lanes, planes).reshape(planes, vectors, row // 2)


def values_of(planes: Words, count: int, dtype: UInt) -> Elements:
    """The inverse: (planes, vectors, words) to (vectors, count)."""
    _, vectors, words = planes.shape
    flat = np.ascontiguousarray(planes).reshape(len(planes), -1)
    values: NDArray[Any] = from_planes(flat[:_LANES], _LANES * 2 * vectors * words).astype(dtype)
    if len(planes) > _LANES:
        high = from_planes(flat[_LANES:], len(values)).astype(np.uint64)
        values |= (high << np.uint64(_LANES)).astype(dtype)
    lanes = values.reshape(_LANES, vectors, 2 * words).swapaxes(0, 1)
    return np.ascontiguousarray(lanes).reshape(vectors, -1)[:, :count]
