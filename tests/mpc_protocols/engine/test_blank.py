"""Blank arrays have the shapes and types that NumPy's own arrays would have, and cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.engine.blank import Blank, BlankBytes, blank
from mpc_protocols.engine.prg import KeyStream, derive

U32, U64, U8 = np.uint32, np.uint64, np.uint8
FLAGS = np.arange(7) % 3 == 1
PLACES = np.array([[0, 3, 3], [1, 2, 0]])

EXPRESSIONS: list[Callable[[NDArray[Any]], Any]] = [
    lambda x: x ^ x[0],
    lambda x: x + 1,
    lambda x: x == 0,
    lambda x: x.astype(U64) << np.uint64(3),
    lambda x: ~x,
    lambda x: -x,
    lambda x: x.sum(axis=0, dtype=U32),
    lambda x: x.sum(axis=(0, 2)),
    lambda x: x.sum(axis=-1, keepdims=True),
    lambda x: np.bitwise_xor.reduce(x, axis=1),
    lambda x: np.bitwise_xor.reduce(x, axis=-2, keepdims=True),
    lambda x: np.add.reduceat(x, [0, 2, 5], axis=0, dtype=U32),
    lambda x: np.cumsum(x, axis=0, dtype=U32),
    lambda x: (x == 0).all(axis=2),
    lambda x: x[2],
    lambda x: x[1:4, ..., np.newaxis],
    lambda x: x[FLAGS],
    lambda x: x[PLACES],
    lambda x: x[:, PLACES],
    lambda x: x[..., PLACES],
    lambda x: x[PLACES, np.array([0, 1, 2])],
    lambda x: x[PLACES, :, PLACES],
    lambda x: x[PLACES, 1:, 2],
    lambda x: x[:, PLACES, 2],
    lambda x: x[np.newaxis, PLACES],
    lambda x: x[[0, 2], :, 1:3],
    lambda x: x.reshape(7, -1),
    lambda x: x.reshape(-1),
    lambda x: x.reshape((5, 28)),
    lambda x: x.transpose(2, 0, 1),
    lambda x: x.swapaxes(0, 1),
    lambda x: np.moveaxis(x, 2, 0),
    lambda x: x.view(U8),
    lambda x: x.view(U64),
    lambda x: x.take(PLACES, axis=1),
    lambda x: np.take(x, PLACES),
    lambda x: np.concatenate([x, x[:2]]),
    lambda x: np.concatenate([x, np.zeros((7, 5, 2), U32)], axis=2),
    lambda x: np.concatenate([np.zeros((7, 5, 2), U32), x], axis=-1),
    lambda x: np.stack([x, x], axis=1),
    lambda x: np.broadcast_arrays(x[0], x)[0],
    lambda x: np.broadcast_arrays(np.zeros((3, 1, 1, 1), U64), x)[0],
    lambda x: np.where(x == 0, np.uint32(0), x),
    lambda x: np.zeros_like(x, shape=(3, 4)),
    lambda x: np.empty_like(x, np.uint8),
    lambda x: np.broadcast_to(x, (2, 7, 5, 4)),
    lambda x: np.take_along_axis(x, np.zeros((7, 1, 4), np.intp), axis=1),
    lambda x: np.packbits(x.astype(U8)),
    lambda x: np.packbits(x.astype(U8), axis=1),
    lambda x: np.unpackbits(x.view(U8), axis=2),
    lambda x: np.unpackbits(x.astype(U8).reshape(-1), count=9),
    lambda x: np.repeat(x, 3),
    lambda x: np.split(x, [2, 5])[1],
    lambda x: x[:, :, 0] @ np.ones((5, 3), U32),
    lambda x: x.astype(np.float64) @ np.ones((4, 2)),
    lambda x: x.copy(),
    lambda x: x.flatten(),
    lambda x: x.tobytes(),
]


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_what_comes_out_has_numpys_shape_and_type(number: int) -> None:
    of, real = EXPRESSIONS[number], np.zeros((7, 5, 4), U32)
    wanted, result = of(real), of(blank(real.shape, real.dtype))
    if isinstance(wanted, bytes):
        assert isinstance(result, BlankBytes) and len(result) == len(wanted)
        return
    assert isinstance(result, Blank) and (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    assert result.nbytes == wanted.nbytes and not any(result.strides)


def test_a_single_number_is_a_zero() -> None:
    of = blank((3, 4), np.int64)
    assert int(of.min()) == 0 and int(of.sum()) == 0 and of[1, 2] == 0


def test_what_is_written_into_one_is_forgotten_and_nothing_is_allocated() -> None:
    of = blank(1 << 50, U64)
    of ^= np.uint64(1)
    of[3:9] = 7
    kept = np.arange(4, dtype=U64)
    kept ^= of[:4]
    assert isinstance(of, Blank) and of.shape == (1 << 50,) and kept.tolist() == [0, 1, 2, 3]


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="unique"):
        np.unique(blank(5, U32))
    with pytest.raises(ValueError, match="reshape"):
        blank(5, U32).reshape(2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        blank(5, U32) + blank(4, U32)


def test_streams_of_a_key_without_content_are_blank() -> None:
    stream = KeyStream(derive(BlankBytes(32), b"mask"))
    assert stream.is_blank and isinstance(stream.draw((3, 4), U64, 1), Blank)
    assert isinstance(stream.reader(1).draw(5, U8), Blank)
    assert not KeyStream(derive(bytes(32), b"mask")).is_blank
