"""Keyed random streams: what makes random and zero sharings free (`docs/design/engine.md` 2.1,
`docs/design/mechanisms.md` 4).

The pairwise key k_i of parties i-1 and i never encrypts anything itself. A keyed BLAKE2b derives one AES-128
key per purpose, session and context from it, and the stream of an operation is AES-CTR of that key from the
counter block `operation (12 bytes) || block (4 bytes)`. Two classes of streams, never mixed:

MASK    zero shares, resharings, input masks. Context: the session id, fresh in each attempt, and the wire's stream. One
        operation number per protocol operation, counted in step by all three parties, never used twice: a second attempt
        with other messages under the same masks would be a two-time pad.
NOISE   the random bits of a release. Context: a hash of the session's key id, the release's step number, the mechanism,
        the hash of every public input of the step and the id of the input sharing. The same release repeats its noise
        (a repeat is free); any changed public byte changes all of it (equal noise on two inputs would reveal their difference).
        Rows made ahead go into later releases of the same session, each into one (`noise.pool`).

A key without content (`blank`) gives streams without content: where a protocol runs for its messages only.

Assumption: AES-128 is a pseudo-random permutation, used for far less than 2^64 blocks under one key; keyed
BLAKE2b is a PRF.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from mpc_protocols.engine.blank import BlankBytes, blank
from mpc_protocols.wire import Wire

OWN_KEY_BYTES = 32
MASK = b"mask"
NOISE = b"noise"
CONTRIBUTION = b"contribution"

_ZEROS = memoryview(bytes(1 << 18))
_MAX_STREAM = 1 << 36  # bytes of one operation: 2^32 blocks of 16
_TOO_LONG = "An operation's stream ends after 2^36 bytes."


def derive(key: bytes, purpose: bytes, *context: bytes) -> bytes:
    """16-byte key for one purpose and context; parts are length-prefixed, so no two contexts collide. `key`:
    16..64 bytes."""
    if isinstance(key, BlankBytes):
        return BlankBytes(16)
    if not 16 <= len(key) <= 64:
        raise ValueError(f"A stream's root key has 16 to 64 bytes, got {len(key)}.")
    state = hashlib.blake2b(key=key, digest_size=16, person=b"cosynth-streams")
    for part in (purpose, *context):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def own_key(wire: Wire) -> bytes:
    """32 fresh secret bytes that a computing party shares with nobody; blank where the keys that it shares
    are."""
    shared = wire.key(1 if wire.me == 0 else 0)
    return BlankBytes(OWN_KEY_BYTES) if isinstance(shared, BlankBytes) else secrets.token_bytes(OWN_KEY_BYTES)


def binding(*context: bytes) -> bytes:
    """32-byte hash of length-prefixed parts: the name of a release, of an input sharing, of what is agreed
    on; blank if a part is."""
    if any(isinstance(part, BlankBytes) for part in context):
        return BlankBytes(32)
    state = hashlib.blake2b(digest_size=32, person=b"cosynth-binding")
    for part in context:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


class KeyStream:
    """The streams of one derived key, one per operation number. One thread at a time, its readers included."""

    def __init__(self, key: bytes) -> None:
        if len(key) != 16:
            raise ValueError(f"A stream key has 16 bytes, got {len(key)}.")
        self.is_blank = isinstance(key, BlankBytes)
        cipher = algorithms.AES(bytes(16) if self.is_blank else key)
        self._encryptor: Any = Cipher(cipher, modes.CTR(bytes(16))).encryptor()
        self._at: tuple[int, int] | None = None
        """The operation and the position whose bytes the cipher gives next, if a reader may go on there."""

    def reader(self, operation: int) -> Reader:
        """The operation's stream from its beginning."""
        return Reader(None if self.is_blank else self, operation)

    def draw(
        self, shape: int | tuple[int, ...], dtype: type[np.unsignedinteger[Any]], operation: int
    ) -> NDArray[Any]:
        """A fresh array of uniform elements of `dtype`, the first of the operation's stream."""
        if self.is_blank:
            return blank(shape, dtype)
        out = np.empty(shape, dtype)
        if out.size:
            if out.nbytes > _MAX_STREAM:
                raise ValueError(_TOO_LONG)
            self._at = None
            self._encryptor.reset_nonce(_counter(operation))  # a tenth of the cost of a cipher of its own
            self._encrypt(out)
        return out

    def read(self, operation: int, position: int, out: NDArray[Any]) -> None:
        """Overwrite a contiguous array, not empty, with the bytes of an operation's stream from a position on."""
        if self._at != (operation, position):
            block, before = divmod(position, 16)
            self._encryptor.reset_nonce(_counter(operation, block))
            self._encryptor.update(_ZEROS[:before])
        self._at = None
        self._encrypt(out)
        self._at = operation, position + out.nbytes

    def _encrypt(self, out: NDArray[Any]) -> None:
        target, size = out.data.cast("B"), out.nbytes
        if size <= len(_ZEROS):
            self._encryptor.update_into(_ZEROS[:size], target)
            return
        for start in range(0, size, len(_ZEROS)):
            stop = min(start + len(_ZEROS), size)
            self._encryptor.update_into(_ZEROS[: stop - start], target[start:stop])


def _counter(operation: int, block: int = 0) -> bytes:
    """The counter block at which an operation's stream begins, or so many blocks later."""
    return operation.to_bytes(12, "big") + block.to_bytes(4, "big")


class Reader:
    """One operation's stream, read piece by piece."""

    def __init__(self, stream: KeyStream | None, operation: int) -> None:
        """stream: None for a stream of which only the sizes matter."""
        self._stream, self._operation, self._position = stream, operation, 0

    @property
    def is_blank(self) -> bool:
        """Whether only the sizes matter."""
        return self._stream is None

    def draw(self, shape: int | tuple[int, ...], dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """A fresh array of uniform elements of `dtype`, the next ones of the stream."""
        if self._stream is None:
            return blank(shape, dtype)
        out = np.empty(shape, dtype)
        self.fill(out)
        return out

    def fill(self, out: NDArray[Any]) -> None:
        """Overwrite the C-contiguous array `out` with the next bytes of the stream, in place."""
        if self._stream is None:
            return
        if not out.flags.c_contiguous:
            raise ValueError("A stream is written into contiguous memory only.")
        if not out.nbytes:
            return
        position = self._position
        if position + out.nbytes > _MAX_STREAM:
            raise ValueError(_TOO_LONG)
        self._position += out.nbytes
        self._stream.read(self._operation, position, out)
