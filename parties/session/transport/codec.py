"""What MPyC's messages are encoded with instead of pickle (`docs/design/session.md` 2,
`docs/design/engine.md` 4).

MPyC pickles whatever `transfer`, `input`, `output` and resharing of arrays send, and unpickles what comes: a
peer's bytes would be run as code. Here a message is plain data (JSON with tags), an array of a numeric dtype
(dtype, shape, raw bytes), or an object array of integers (shape, width, fixed-width two's complement).
Lengths must be exact; nothing else decodes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import ProtocolAborted

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLAIN, _NUMERIC, _INTEGERS = b"J", b"A", b"I"
_HEAD = struct.Struct("<4sBI")
_DTYPES = frozenset(
    f"{order}{kind}{size}"
    for kind, sizes in (("i", "1248"), ("u", "1248"), ("f", "48"), ("b", "1"))
    for size in sizes
    for order in "<|"
)
_MAX_AXES = 8


def dumps(value: object) -> bytes:
    """Bytes of plain data or an array. Raises TypeError for anything else."""
    if isinstance(value, np.ndarray):
        return _integers(value) if value.dtype == object else _numeric(value)
    return _PLAIN + json.dumps(_tagged(value), separators=(",", ":")).encode()


def loads(payload: bytes | bytearray | memoryview) -> Any:
    """The value; raises `ProtocolAborted` if the bytes are not exactly what `dumps` makes."""
    data = bytes(payload)
    kind, body = data[:1], data[1:]
    try:
        if kind == _PLAIN:
            return _untagged(json.loads(body))
        if kind in (_NUMERIC, _INTEGERS):
            return _array(kind, body)
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        struct.error,
        binascii.Error,
        OverflowError,
    ):
        pass
    raise ProtocolAborted("A peer sent a message that MPyC's codec does not allow; the run was stopped.")


def _tagged(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return {"i": hex(value)}
    if isinstance(value, bytes | bytearray):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, tuple):
        return {"t": [_tagged(item) for item in value]}
    if isinstance(value, dict):
        return {"d": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return {"a": base64.b64encode(dumps(value)).decode()}
    raise TypeError(f"A {type(value).__name__} cannot be sent to another party.")


def _untagged(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    ((tag, content),) = value.items()  # exactly one tag; integers are never bare
    if tag == "i":
        return int(content, 16)
    if tag == "b":
        return base64.b64decode(content, validate=True)
    if tag == "t":
        return tuple(_untagged(item) for item in content)
    if tag == "d":
        return {_untagged(key): _untagged(item) for key, item in content}
    if tag == "a":
        return loads(base64.b64decode(content, validate=True))
    raise ValueError(tag)


def _numeric(array: NDArray[Any]) -> bytes:
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise TypeError(f"An array of {array.dtype} cannot be sent to another party.")
    return _NUMERIC + _head(dtype, array.shape, array.itemsize) + array.astype(dtype, copy=False).tobytes()


def _integers(array: NDArray[Any]) -> bytes:
    values = [int(value) for value in array.reshape(-1)]
    width = max([value.bit_length() // 8 + 1 for value in values], default=1)
    return (
        _INTEGERS
        + _head("int", array.shape, width)
        + b"".join(v.to_bytes(width, "little", signed=True) for v in values)
    )


def _head(dtype: str, shape: tuple[int, ...], width: int) -> bytes:
    if len(shape) > _MAX_AXES:
        raise TypeError(f"An array of {len(shape)} axes cannot be sent to another party.")
    return _HEAD.pack(dtype.encode(), len(shape), width) + struct.pack(f"<{len(shape)}Q", *shape)


def _array(kind: bytes, body: bytes) -> NDArray[Any]:
    name, axes, width = _HEAD.unpack_from(body)
    dtype = name.rstrip(b"\0").decode()
    if axes > _MAX_AXES or width == 0:
        raise ValueError
    shape = struct.unpack_from(f"<{axes}Q", body, _HEAD.size)
    data = memoryview(body)[_HEAD.size + 8 * axes :]
    if len(data) != math.prod(shape) * width:
        raise ValueError
    if kind == _NUMERIC:
        if dtype not in _DTYPES or np.dtype(dtype).itemsize != width:
            raise ValueError
        if dtype.endswith("b1"):  # a byte other than 0 and 1 is not a bool
            return np.frombuffer(data, dtype=np.uint8).reshape(shape).astype(np.bool_)
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
    if dtype != "int":
        raise ValueError
    integers = np.empty(math.prod(shape), dtype=object)
    integers[:] = [
        int.from_bytes(data[at : at + width], "little", signed=True) for at in range(0, len(data), width)
    ]
    return integers.reshape(shape)
