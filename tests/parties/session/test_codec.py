"""The codec that replaces pickle: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import contextlib
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted
from parties.session.transport import codec

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_data_comes_back(value: object) -> None:
    back = codec.loads(codec.dumps(value))
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "bool",
        ">i4",
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_arrays_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 5).astype(dtype)
    back = codec.loads(codec.dumps(array))
    assert back.shape == shape and back.dtype == array.dtype.newbyteorder("<") and (back == array).all()
    back[...] = 0  # writable


def test_numbers_of_numpy_become_plain() -> None:
    values = codec.loads(codec.dumps([np.int64(-3), np.uint8(200), np.float32(0.5), np.bool_(True)]))
    assert values == [-3, 200, 0.5, True] and [type(v) for v in values] == [int, int, float, bool]


@given(st.lists(st.integers(-(2**200), 2**200)))
def test_integers_of_any_size_come_back(values: list[int]) -> None:
    array = np.array([*values, 0], dtype=object)
    back = codec.loads(codec.dumps(array))
    assert back.dtype == object and back.tolist() == [*values, 0]


@given(st.binary())
def test_other_bytes_are_refused(raw: bytes) -> None:
    for payload in (raw, b"A" + raw, b"I" + raw, b"J" + raw):
        with contextlib.suppress(ProtocolAborted):
            value = codec.loads(payload)
            assert codec.loads(codec.dumps(value)) is not Ellipsis  # whatever is let in is plain data


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        pickle.dumps([1, 2]),
        b"J" + b"[" * 100_000,
        b'J{"x":1}',
        b'J{"i":"0x1","b":""}',
        b"J7",
        b'J{"b":"*"}',
        b"A" + struct.pack("<4sBIQ", b"<i8", 1, 8, 2) + bytes(15),
        b"A" + struct.pack("<4sBIQ", b"<i8", 1, 8, 2) + bytes(17),
        b"A" + struct.pack("<4sBIQ", b"|O8", 1, 8, 1) + bytes(8),
        b"A" + struct.pack("<4sBIQ", b"<i8", 1, 1, 8) + bytes(8),
        b"I" + struct.pack("<4sBIQ", b"int", 1, 0, 2**60),
        b"A" + struct.pack("<4sBI", b"<i8", 9, 8) + bytes(72),
        b"A" + struct.pack("<4sBIQQ", b"<i8", 2, 8, 2**63, 2) + bytes(16),
    ],
)
def test_crafted_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolAborted):
        codec.loads(payload)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, lambda: 0, np.array(["text"]), np.zeros(2, dtype=complex)]
)
def test_other_values_are_not_sent(value: Any) -> None:
    with pytest.raises(TypeError):
        codec.dumps(value)
