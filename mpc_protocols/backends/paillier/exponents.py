"""A contingency table of two owners' columns by ciphertexts of one-hot exponents: for comparison with
`pair.contingency`.

The textbook form with an additively homomorphic cryptosystem. For every record r, one owner (of exponents)
has a category a_r, the other (of products) a category b_r; wanted are shares of T[i, j] = records with b_r =
i and a_r = j.

    exponents -> products   per record, ciphertexts of 2^(64 a_r): one slot per category, several ciphertexts if they need it
    products -> exponents   per category i, the product of the ciphertexts of its records, times one of a fresh mask, refreshed:
                            the owner of exponents knows the coins of every record, and must not see which ones were added up
    shares                  what the owner of exponents decrypts; minus the masks

Slots have 64 bits and masks 63, so that no slot carries; of N records, what the owner of exponents decrypts
is within N 2^-63 of masks alone. Records that an owner does not hold have a category of their own: no slot,
and no product. One ciphertext per record makes it dear: `runner/bench/benches/contingency_paillier.py`
measures how much. No backend uses it.

Who learns what, assumptions: as of `contribution`, with the owner of exponents as key holder; the number of
records is public. Threat model: semi-honest, the two do not collude.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey, PublicKey
from mpc_protocols.backends.paillier.packing import MESSAGE_PLAINTEXTS
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.wire import Wire

SLOT_BITS: Final = 64


@dataclass(frozen=True)
class TableShape:
    """Public sizes. slots, products: categories of the owner of exponents and of that of products."""

    records: int
    slots: int
    products: int

    def lengths(self, key: PublicKey) -> list[int]:
        """Slots of each plaintext of a record."""
        most = (key.bits - 1) // SLOT_BITS
        return [min(most, self.slots - start) for start in range(0, self.slots, most)]


def of_exponents(wire: Wire, peer: int, key: PrivateKey, shape: TableShape, codes: NDArray[Any]) -> Elements:
    """At the owner of exponents: its share of T, (products, slots). codes: (records,); `slots` for a record
    that it lacks."""
    public = key.public
    lengths = shape.lengths(public)
    encoded = [_plaintexts(row, lengths) for row in np.eye(shape.slots + 1, shape.slots, dtype="<u8")]
    encryption = Encryption(public)
    encryption.expect(shape.records * len(lengths))
    for start in range(0, shape.records, MESSAGE_PLAINTEXTS):
        plaintexts = [part for code in codes[start : start + MESSAGE_PLAINTEXTS] for part in encoded[code]]
        wire.send(peer, public.encode(encryption.encrypt(plaintexts)))
    share = np.empty((shape.products, shape.slots), np.uint32)
    for row in share:
        masked = public.decode(wire.receive(peer, len(lengths) * public.ciphertext_bytes), peer)
        row[:] = np.frombuffer(b"".join(key.decrypt(masked, 8 * max(lengths))), "<u8")[: shape.slots]
    return share


def of_products(
    wire: Wire, peer: int, encryption: Encryption, shape: TableShape, codes: NDArray[Any]
) -> Elements:
    """At the owner of products: its share of T. codes: (records,); `products` for a record that it lacks.

    Raises `ProtocolAborted` for what is no ciphertext.
    """
    key = encryption.key
    lengths = shape.lengths(key)
    count = len(lengths)
    drawn = np.frombuffer(secrets.token_bytes(8 * shape.products * shape.slots), "<u8") >> np.uint64(1)
    masks = drawn.reshape(shape.products, shape.slots)
    sums = [list(map(key.refreshed, encryption.encrypt(_plaintexts(mask, lengths)))) for mask in masks]
    for start in range(0, shape.records, MESSAGE_PLAINTEXTS):
        held = codes[start : start + MESSAGE_PLAINTEXTS]
        received = key.decode(wire.receive(peer, len(held) * count * key.ciphertext_bytes), peer)
        for record, code in enumerate(held):
            if code < shape.products:
                own = received[record * count : (record + 1) * count]
                sums[code] = list(map(key.add, sums[code], own))
    for ciphertexts in sums:
        wire.send(peer, key.encode(ciphertexts))
    return np.uint32(0) - masks.astype(np.uint32)


def _plaintexts(slots: NDArray[np.uint64], lengths: Sequence[int]) -> list[bytes]:
    """So many slots in each plaintext, little-endian."""
    ends = np.cumsum(lengths)
    return [part.tobytes() for part in np.split(slots, ends[:-1])]
