"""Arrow arrays as NumPy arrays and back, from their buffers.

Arrow's own `to_numpy`, `pa.array` of Python objects and every conversion of a Python scalar import pandas
first: 0.35 s in each party process, for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpc_protocols.process.later import np
from parties.data.libraries import pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def entries(array: pa.Array, kind: Any) -> NDArray[Any]:
    """The entries of an array of numbers of this dtype, without a copy; where one is null: anything."""
    _, data = array.buffers()
    if data is None:  # no entry
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind)[array.offset : array.offset + len(array)]


def present(array: pa.Array) -> NDArray[np.bool_]:
    """Which entries of an array of any type are not null."""
    if not array.null_count:
        return np.ones(len(array), dtype=bool)
    if array.null_count == len(array):  # an array of type null has no bitmap
        return np.zeros(len(array), dtype=bool)
    return _bits(array.buffers()[0], array)


def truths(array: pa.BooleanArray) -> NDArray[np.bool_]:
    """The entries of an array of truth values; where one is null: anything."""
    data = array.buffers()[1]
    return np.zeros(len(array), dtype=bool) if data is None else _bits(data, array)


def bits(chosen: NDArray[np.bool_]) -> pa.BooleanArray:
    """Truth values as an Arrow array without nulls."""
    packed = pa.py_buffer(np.packbits(chosen, bitorder="little").tobytes())
    return pa.BooleanArray.from_buffers(pa.bool_(), len(chosen), [None, packed])


def binaries(values: Sequence[bytes | None]) -> pa.BinaryArray:
    """Byte strings as an Arrow array of type binary, None as null."""
    lengths = np.fromiter((len(value or b"") for value in values), np.int32, len(values))
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    valid = bits(np.fromiter((value is not None for value in values), bool, len(values))).buffers()[1]
    data = pa.py_buffer(b"".join(value or b"" for value in values))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [valid, pa.py_buffer(offsets.tobytes()), data]
    )


def _bits(bitmap: pa.Buffer, array: pa.Array) -> NDArray[np.bool_]:
    first, last = array.offset // 8, -(-(array.offset + len(array)) // 8)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8)[first:last], bitorder="little")
    return bits[array.offset - 8 * first :][: len(array)].astype(bool)
