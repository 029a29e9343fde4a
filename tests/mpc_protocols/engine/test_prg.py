"""A key's streams are AES-CTR of their own counter blocks, however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.engine import prg
from mpc_protocols.engine.prg import KeyStream, Reader

KEY = bytes(range(16))


def reference(operation: int, size: int) -> bytes:
    """The first bytes of an operation's stream, by a cipher of its own."""
    begin = operation.to_bytes(12, "big") + bytes(4)
    return Cipher(algorithms.AES(KEY), modes.CTR(begin)).encryptor().update(bytes(size))


PIECE = st.one_of(st.integers(0, 40), st.sampled_from([1 << 12, (1 << 18) + 5]))


@given(st.lists(st.tuples(st.integers(0, 2), PIECE), max_size=12))
def test_readers_and_draws_of_one_key_take_turns_and_none_disturbs_another(
    asked: list[tuple[int, int]],
) -> None:
    """0, 1: readers of two operations, which go on where they were; 2: a draw of an operation of its own."""
    stream = KeyStream(KEY)
    readers = {of: stream.reader(of) for of in (0, 1)}
    read = dict.fromkeys(readers, b"")
    for number, (of, size) in enumerate(asked):
        if of in readers:
            read[of] += readers[of].draw(size, np.uint8).tobytes()
        else:
            drawn = stream.draw(size, np.uint8, 7 + number)
            assert drawn.tobytes() == reference(7 + number, size)
    for of, content in read.items():
        assert content == reference(of, len(content))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_elements_are_the_streams_bytes_in_any_shape(dtype: type[np.uint16]) -> None:
    stream = KeyStream(KEY)
    size = 2 * 3 * 5 * np.dtype(dtype).itemsize
    assert stream.draw((2, 3, 5), dtype, 1 << 90).tobytes() == reference(1 << 90, size)
    assert stream.reader(1 << 90).draw((5, 0, 3), dtype).shape == (5, 0, 3)


def test_a_stream_ends_before_the_next_operations_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prg, "_MAX_STREAM", 100)
    stream = KeyStream(KEY)
    reader: Reader = stream.reader(3)
    reader.draw(100, np.uint8)
    for ask in (lambda: reader.draw(1, np.uint8), lambda: stream.draw(101, np.uint8, 4)):
        with pytest.raises(ValueError, match="ends after"):
            ask()


def test_a_reader_goes_on_behind_its_elements_of_any_size_after_others_have_read() -> None:
    stream, read = KeyStream(KEY), b""
    reader = stream.reader(3)
    for dtype in (np.uint64, np.uint16, np.uint32, np.uint8, np.uint64):
        read += reader.draw(5, dtype).tobytes()
        stream.draw(1, np.uint8, 4)
    assert read == reference(3, len(read))


def test_a_stream_is_written_into_contiguous_memory_only() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        KeyStream(KEY).reader(3).fill(np.zeros((4, 4), np.uint8)[:, ::2])
