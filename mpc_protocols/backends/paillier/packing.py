"""Counts in the slots of a Paillier plaintext, and masks that hide them there (`docs/design/paillier.md` 2).

    plaintext   X = sum over slots j of M_j 2^(32 j)       K slots, the lowest first; M_j < 2^31
    mask        R uniform below 2^(|n|-2)                  of slots r_j and more above them
    decrypted   Y = X + R                                  y_j = M_j + r_j + (carry out of slot j - 1) modulo 2^32

A slot has no headroom: it carries into the next with a chance of M_j 2^-32, and the carry is taken off again
(`carries`): it is 1 where the uppermost bit of r_j is 1 and that of y_j is 0. Bits above the slots hide
whether the uppermost one carries; their number follows from public sizes, such that all masked sums of a run
are together within 2^-40 of masks.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements

SECURITY_BITS = 40
"""What the key holder sees of all masked sums of a run is within 2^-40 of what is independent of the data."""
HEADER_BYTES = 64
"""What goes before a contributor's ciphertexts."""
SLOT_BITS = 32
"""A slot is an element of the ring of all shares, and cells are below half of it."""
MESSAGE_PLAINTEXTS = 256
"""Plaintexts whose ciphertexts travel in one message."""

ROOTS = 8
"""That prove a key well made."""


def key_bytes(bits: int) -> int:
    """Bytes of a public key on the wire."""
    return -(-bits // 8)


def proof_bytes(bits: int) -> int:
    """Bytes of a proof for a key of so many bits (`key_proof`)."""
    return ROOTS * key_bytes(bits)


@dataclass(frozen=True)
class Packing:
    """How the cells of one sharing lie in plaintexts. modulus_bits: exact length of n. slots: K, of one
    plaintext."""

    modulus_bits: int
    slots: int

    @classmethod
    def of(cls, modulus_bits: int, cliques: int, sharing: int) -> Self:
        """The packing of a run's sharing number `sharing`, from 1, of so many cliques.

        Sharing s of C cliques gets the distance 2^-(40 + 2 floor(lg s) + 1): these add up to 2^-40 at most
        over all s.
        """
        above = SECURITY_BITS + 1 + (cliques - 1).bit_length() + 2 * (sharing.bit_length() - 1)
        return cls(modulus_bits, (modulus_bits - 2 - above) // SLOT_BITS)

    @property
    def plaintext_bytes(self) -> int:
        """Bytes of all slots of a plaintext."""
        return self.slots * SLOT_BITS // 8

    def count(self, cells: int) -> int:
        """Plaintexts for so many cells."""
        return -(-cells // self.slots)

    def messages(self, cells: int) -> Iterator[slice]:
        """Of so many cells, those of each message."""
        step = MESSAGE_PLAINTEXTS * self.slots
        return (slice(start, min(start + step, cells)) for start in range(0, cells, step))

    def pack(self, cells: Elements) -> list[bytes]:
        """Plaintexts as little-endian bytes. cells: uint32, (cells,)."""
        slots = np.zeros((self.count(len(cells)), self.slots), "<u4")
        slots.reshape(-1)[: len(cells)] = cells
        return [row.tobytes() for row in slots]

    def unpack(self, plaintexts: list[bytes], cells: int) -> Elements:
        """The first slots of these plaintexts, whatever is above them: uint32, (cells,)."""
        size = self.plaintext_bytes
        slots = np.frombuffer(b"".join(plaintext[:size] for plaintext in plaintexts), "<u4")
        return slots[:cells].astype(np.uint32)

    def masks(self, count: int) -> list[bytes]:
        """So many integers, uniform below 2^(modulus_bits - 2), from the operating system; each for one use."""
        bits = self.modulus_bits - 2
        drawn = (
            np.frombuffer(secrets.token_bytes(count * key_bytes(bits)), np.uint8).reshape(count, -1).copy()
        )
        drawn[:, -1] &= 0xFF >> -bits % 8
        return [row.tobytes() for row in drawn]

    def take_off(self, share: Elements, carries: Elements) -> None:
        """Subtract from a share of all cells, in place, the carry out of the slot below each: (cells,),
        (cells,)."""
        into = carries[:-1].copy()
        into[self.slots - 1 :: self.slots] = 0  # out of the uppermost slot of a plaintext
        share[1:] -= into
