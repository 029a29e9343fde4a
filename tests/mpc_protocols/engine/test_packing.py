"""Shares on a party's own disk: what is written is read, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.errors import UsageError

ARRAYS: list[NDArray[Any]] = [
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.array(7, np.uint16),
    np.empty((0, 4), np.uint32),
    np.full((2, 1, 2), 1 << 63, np.uint64),
    np.arange(24, dtype=np.uint32).reshape(4, 6)[::2, 1::2],
]


def test_arrays_come_back_as_they_were_and_may_be_changed() -> None:
    packed = pack(ARRAYS)
    for read, of in zip(unpack(packed), ARRAYS, strict=True):
        assert read.dtype == of.dtype and read.shape == of.shape
        np.testing.assert_array_equal(read, of)
        read[...] = 0
    assert unpack(pack([])) == []
    np.testing.assert_array_equal(unpack(packed)[0], ARRAYS[0])


def described(*forms: object, content: bytes = bytes(8)) -> bytes:
    header = json.dumps(forms).encode()
    return len(header).to_bytes(4, "big") + header + content


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        bytes(3),
        pack(ARRAYS)[:-1],
        pack(ARRAYS) + b"\0",
        described(["<i8", [1]]),
        described(["<u8", [-1]]),
        described(["<u8", [True]]),
        described(["<u8", [1, 2]]),
        described(["<u8", [1.0]]),
        described("<u8"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(packed: bytes) -> None:
    with pytest.raises(UsageError, match="cannot be read: they were altered or are of another version"):
        unpack(packed)
