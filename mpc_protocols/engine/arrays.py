"""Arrays on a wire: a message is an array's elements as they lie in memory, little-endian; its shape and
dtype are known.

Of a blank array (`blank`) its size travels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.blank import Blank, BlankBytes, blank
from mpc_protocols.wire import Wire


def send_array(wire: Wire, peer: int, array: NDArray[Any]) -> None:
    """Send an array, which must not be modified afterwards; empty arrays are not sent."""
    if isinstance(array, Blank):
        if array.size:
            wire.send(peer, BlankBytes(array.nbytes))
    elif array.size:
        wire.send(peer, np.ascontiguousarray(array).data.cast("B"))


def receive_array(wire: Wire, peer: int, shape: int | tuple[int, ...], dtype: UInt) -> NDArray[Any]:
    """The peer's next array, of exactly this shape and dtype; read-only. Raises `ProtocolAborted`,
    `PeerLost`."""
    count = math.prod(shape) if isinstance(shape, tuple) else int(shape)
    size = count * np.dtype(dtype).itemsize
    payload: memoryview | bytes = wire.receive(peer, size) if size else b""
    if isinstance(payload, BlankBytes):
        return blank(shape, dtype)
    array = np.frombuffer(payload, dtype)
    return array.reshape(shape) if isinstance(shape, tuple) and len(shape) != 1 else array


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """`numpy.ascontiguousarray`, which a blank array has no need of."""
    return array if isinstance(array, Blank) else np.ascontiguousarray(array)


def sum_segments(values: Elements, lengths: NDArray[np.int64]) -> Elements:
    """Sums modulo 2^K of consecutive segments of a vector, without widening; the lengths, of which any may be
    0, add up to it."""
    if int(lengths.sum()) != len(values):
        raise ValueError(f"Segments of {int(lengths.sum())} cells do not cover {len(values)}.")
    if isinstance(values, Blank):
        return blank(len(lengths), values.dtype)
    sums = np.zeros(len(lengths), values.dtype)
    filled = np.flatnonzero(lengths)
    if len(filled):
        starts = (np.cumsum(lengths) - lengths)[filled]
        sums[filled] = np.add.reduceat(values, starts, dtype=values.dtype.type)
    return sums
