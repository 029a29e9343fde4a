"""Arrays as bytes, for what a party keeps on its own disk: shares of a release that is about to be opened.

Never used for what travels: the reader is the writer. Format: the length of a header (4 bytes, big-endian),
the header, JSON [[dtype, shape], ...], then the arrays' bytes, little-endian. Only unsigned integers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError

_DTYPES = ("<u1", "<u2", "<u4", "<u8")


def pack(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Arrays of unsigned integers of any shapes, one after the other."""
    forms, content = [], []
    for array in arrays:
        dtype = f"<u{array.dtype.itemsize}"
        forms.append([dtype, list(array.shape)])
        content.append(np.ascontiguousarray(array).astype(dtype, copy=False).tobytes())
    header = json.dumps(forms).encode()
    return b"".join((len(header).to_bytes(4, "big"), header, *content))


def unpack(packed: bytes) -> list[NDArray[Any]]:
    """The arrays of `pack`. Raises `UsageError` if they are something else."""
    try:
        at = 4 + int.from_bytes(packed[:4], "big")
        arrays = []
        for dtype, shape in json.loads(packed[4:at]):
            if dtype not in _DTYPES or not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError
            size = math.prod(shape) * int(dtype[2:])
            if at + size > len(packed):
                raise ValueError
            arrays.append(np.frombuffer(packed[at : at + size], dtype).reshape(shape).copy())
            at += size
        if at != len(packed):
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(
            "The shares that an interrupted run has kept cannot be read: they were altered or are of another version; "
            "start anew with --replace."
        ) from None
    return arrays
