"""Counts in the slots of a Paillier plaintext, and masks that hide them there (`docs/design/paillier.md` 2).

    plaintext  X = sum over slots j of M_j 2^(w j)         slots of w bits, the lowest first
    mask       R = sum over slots j of R_j 2^(w j)         R_j uniform below 2^(w-1)

Whoever sees X + R sees every M_j within statistical distance M_j 2^-(w-1) of a uniform slot, and no slot carries into the next.
The width follows from public sizes, such that all masked slots of a run are together within 2^-40 of uniform.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements

SECURITY_BITS = 40
"""What the key holder sees of all masked sums of a run is within 2^-40 of what is independent of the data."""
HEADER_BYTES = 64
"""What goes before a contributor's ciphertexts."""
ELEMENT_BITS = 32
MESSAGE_PLAINTEXTS = 256
"""Plaintexts whose ciphertexts travel in one message."""


def key_bytes(bits: int) -> int:
    """Bytes of a public key on the wire."""
    return -(-bits // 8)


@dataclass(frozen=True)
class Packing:
    """How the cells of one sharing lie in plaintexts. modulus_bits: exact length of n. slot_bits: the width w, above 32."""

    modulus_bits: int
    slot_bits: int

    @classmethod
    def of(cls, modulus_bits: int, row_cap: int, cliques: int, sharing: int) -> Self:
        """The packing of a run's sharing number `sharing`, from 1, of so many cliques, of row_cap rows at most over all parties.

        Sharing s of C cliques gets the distance 2^-(40 + 2 floor(lg s) + 1): these add up to 2^-40 at most over all s.
        """
        width = (
            row_cap.bit_length()
            + 1
            + SECURITY_BITS
            + (cliques - 1).bit_length()
            + 2 * sharing.bit_length()
            - 1
        )
        return cls(modulus_bits, width)

    @property
    def slots(self) -> int:
        """Slots of a plaintext: as many as keep the sum with its mask below 2^(modulus_bits - 1), hence below n."""
        return (self.modulus_bits - 1) // self.slot_bits

    @property
    def plaintext_bytes(self) -> int:
        """Bytes of all slots of a plaintext."""
        return -(-self.slots * self.slot_bits // 8)

    def count(self, cells: int) -> int:
        """Plaintexts for so many cells."""
        return -(-cells // self.slots)

    def messages(self, cells: int) -> Iterator[slice]:
        """Of so many cells, those of each message."""
        step = MESSAGE_PLAINTEXTS * self.slots
        return (slice(start, min(start + step, cells)) for start in range(0, cells, step))

    def pack(self, cells: Elements) -> list[bytes]:
        """Plaintexts as little-endian bytes. cells: uint32, (cells,)."""
        slots = np.zeros((self.count(len(cells)) * self.slots, self.slot_bits), np.uint8)
        slots[: len(cells), :ELEMENT_BITS] = _bits(cells.astype("<u4").view(np.uint8), ELEMENT_BITS)
        return self._plaintexts(slots)

    def unpack(self, plaintexts: list[bytes], cells: int) -> Elements:
        """The first cells of these plaintexts, each modulo 2^32. uint32, (cells,)."""
        rows = _bits(np.frombuffer(b"".join(plaintexts), np.uint8), 8 * self.plaintext_bytes)
        slots = rows[:, : self.slots * self.slot_bits].reshape(-1, self.slot_bits)
        elements = np.packbits(slots[:cells, :ELEMENT_BITS], axis=1, bitorder="little")
        return elements.view("<u4").reshape(-1).astype(np.uint32)

    def masks(self, count: int) -> list[bytes]:
        """So many plaintexts whose slots are uniform below half their range, from the operating system; each for one use."""
        drawn = np.frombuffer(secrets.token_bytes(count * self.plaintext_bytes), np.uint8)
        slots = _bits(drawn, 8 * self.plaintext_bytes)[:, : self.slots * self.slot_bits]
        slots = slots.reshape(-1, self.slot_bits)
        slots[:, -1] = 0
        return self._plaintexts(slots)

    def _plaintexts(self, slots: NDArray[np.uint8]) -> list[bytes]:
        rows = slots.reshape(-1, self.slots * self.slot_bits)
        return [row.tobytes() for row in np.packbits(rows, axis=1, bitorder="little")]


def _bits(values: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
    """The bits of values that follow each other and have so many each, the lowest first: (values, length)."""
    return np.unpackbits(values, bitorder="little").reshape(-1, length)
