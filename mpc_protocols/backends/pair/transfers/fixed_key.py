"""AES under public keys as a correlation-robust hash and as the doubling of GGM trees.

    H(x) = pi(x) ^ x,    pi = AES-128 under a PUBLIC key

(Matyas-Meyer-Oseas; Guo, Katz, Wang, Yu, "Efficient and secure multiparty computation from fixed-key block
ciphers", 2020). With pi an ideal permutation, H(q ^ Delta) looks uniform to whoever knows q but not the
128-bit Delta, and two hashes of one unknown seed look like two seeds. A guess of the secret meets all N
hashes made under one key at once, q N / 2^128; so every batch has a key of its own, derived from public
numbers (`Link.context`). No counter goes into H: rows of an honest receiver are pseudorandom and collide with
probability N^2 2^-129; a receiver that chooses its rows is outside this package's model.

Cost: 3 ns a block of 16 bytes. Threat model: semi-honest. The running time depends on sizes only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from mpc_protocols.engine.blank import Blank

Blocks = NDArray[np.uint64]
"""Blocks of 128 bits: the last axis has two words."""

_PIECE = 1 << 16  # bytes hashed at a time: they stay in the cache between cipher and XOR


class PublicPermutation:
    """AES-128 under a public key. One thread at a time."""

    def __init__(self, key: bytes) -> None:
        """key: at least 16 public bytes, the first 16 of which count."""
        self._cipher: Any = Cipher(algorithms.AES(key[:16]), modes.ECB()).encryptor()
        self._scratch = np.empty(_PIECE // 8 + 2, np.uint64)  # the library asks for room for one block more

    def hash(self, blocks: Blocks) -> Blocks:
        """H of every block: contiguous uint64 of shape (.., 2) to a new array of the same shape."""
        if isinstance(blocks, Blank):
            return blocks
        if blocks.dtype != np.uint64 or not blocks.flags.c_contiguous or blocks.size % 2:
            raise ValueError("Blocks are contiguous words, two of them each.")
        out = np.empty_like(blocks)
        source, target = blocks.reshape(-1), out.reshape(-1)
        step = _PIECE // 8
        room = self._scratch.view(np.uint8).data
        for start in range(0, source.size, step):
            cells = source[start : start + step]
            self._cipher.update_into(cells.view(np.uint8).data, room)
            np.bitwise_xor(cells, self._scratch[: cells.size], out=target[start : start + step])
        return out
