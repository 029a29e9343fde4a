"""A random linear functional of long rows of bits: GMAC as it runs in hardware, some 20 GB/s.

For a key K, H = AES_K(0) and a row v cut into blocks v_1 .. v_n of 128 bits, GMAC is GHASH under H plus a
mask that depends on key and nonce only. GHASH is linear over GF(2) but for the block of lengths, so for rows
of one length

    L(v) = GMAC(v) + GMAC(0) = sum_j H^(n-j+2) v_j        in GF(2^128)

Statement. For v != 0 fixed before K is drawn, L(v) = 0 with probability at most (n + 1) / 2^128, plus what
tells AES from a random permutation in one query: a polynomial in H of that degree, not zero.

Long rows are cut into pieces with keys of their own; their functionals add up: that of the row is zero with
the same probability as the worst piece's, for the keys are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.blank import BlankBytes
from mpc_protocols.engine.prg import derive

PIECE = 2048
"""Words of a row, over its entries, that are hashed under one key: what is computed with them stays in the
second-level cache."""
_NONCE = bytes(12)


def pieces(words: int, entries: int = 1) -> Iterator[slice]:
    """The pieces of a row of so many words, each with so many entries."""
    step = max(1, PIECE // entries)
    return (slice(start, min(start + step, words)) for start in range(0, words, step))


class Functional:
    """L of rows of one length, of at most PIECE words."""

    def __init__(self, seed: bytes, place: int, words: int) -> None:
        """seed: 16 to 64 bytes that were unknown when the rows were fixed. place: a number for each piece,
        used once a seed."""
        self._key = derive(seed, b"functional", place.to_bytes(8, "big"))
        self._hash = AESGCM(self._key)
        self._zero = np.frombuffer(self._hash.encrypt(_NONCE, b"", bytes(8 * words)), np.uint8)

    @property
    def point(self) -> bytes:
        """H, as a block."""
        return Cipher(algorithms.AES(self._key), modes.ECB()).encryptor().update(bytes(BLOCK))

    def of(self, rows: Words) -> Blocks:
        """L of every row: (rows, words), each contiguous, to (rows, 16)."""
        view, encrypt = rows.reshape(-1).view(np.uint8).data, self._hash.encrypt
        size = 8 * rows.shape[1]
        tags = b"".join([encrypt(_NONCE, b"", view[i : i + size]) for i in range(0, len(view), size)])
        found: NDArray[np.uint8] = np.frombuffer(tags, np.uint8).reshape(-1, BLOCK) ^ self._zero
        return found


def message_tag(key: bytes, content: Sequence[Words]) -> bytes:
    """16 bytes that authenticate arrays of known shapes once: GMAC under a key of 16 bytes used for nothing
    else; zeros under a blank one."""
    if isinstance(key, BlankBytes):
        return bytes(BLOCK)
    return AESGCM(key).encrypt(_NONCE, b"", b"".join(np.ascontiguousarray(array).data for array in content))
