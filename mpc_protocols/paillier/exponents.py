"""A contingency table of two owners' columns by ciphertexts of one-hot exponents: for comparison with `pair.contingency`.

The textbook form with an additively homomorphic cryptosystem. For every record r, one owner (of exponents) has a category a_r,
the other (of products) a category b_r; wanted are shares of T[i, j] = records with b_r = i and a_r = j.

    exponents -> products   per record, ciphertexts of 2^(w a_r): one slot per category, several ciphertexts if they need it
    products -> exponents   per category i, the product of the ciphertexts of its records, times one of a fresh mask, refreshed:
                            the owner of exponents knows the coins of every record, and must not see which ones were added up
    shares                  what the owner of exponents decrypts; minus the masks

Records that an owner does not hold have a category of their own: no slot, and no product. One ciphertext per record makes it
dear: `runner/bench/benches/contingency_paillier.py` measures how much. No backend uses it.

Who learns what, assumptions: as of `contribution`, with the owner of exponents as key holder; the number of records is public.
Threat model: semi-honest, the two do not collude.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.paillier.keys import Encryption, PrivateKey
from mpc_protocols.paillier.packing import MESSAGE_PLAINTEXTS, Packing
from mpc_protocols.wire import Wire


@dataclass(frozen=True)
class TableShape:
    """Public sizes. slots, products: categories of the owner of exponents and of that of products."""

    records: int
    slots: int
    products: int

    def packing(self, key_bits: int) -> Packing:
        """How the slots of a record lie in plaintexts: all cells together count every record once, as those of one clique do."""
        return Packing.of(key_bits, self.records, 1, 1)


def of_exponents(wire: Wire, peer: int, key: PrivateKey, shape: TableShape, codes: NDArray[Any]) -> Elements:
    """At the owner of exponents: its share of T, (products, slots). codes: (records,); `slots` for a record that it lacks."""
    public, packing = key.public, shape.packing(key.public.bits)
    one_hot = np.eye(shape.slots + 1, shape.slots, dtype=np.uint32)
    encoded = [packing.pack(row) for row in one_hot]
    encryption = Encryption(public)
    encryption.expect(shape.records * packing.count(shape.slots))
    for start in range(0, shape.records, MESSAGE_PLAINTEXTS):
        plaintexts = [part for code in codes[start : start + MESSAGE_PLAINTEXTS] for part in encoded[code]]
        wire.send(peer, public.encode(encryption.encrypt(plaintexts)))
    count = packing.count(shape.slots)
    share = np.empty((shape.products, shape.slots), np.uint32)
    for row in share:
        masked = public.decode(wire.receive(peer, count * public.ciphertext_bytes), peer)
        row[:] = packing.unpack(key.decrypt(masked, packing.plaintext_bytes), shape.slots)
    return share


def of_products(
    wire: Wire, peer: int, encryption: Encryption, shape: TableShape, codes: NDArray[Any]
) -> Elements:
    """At the owner of products: its share of T. codes: (records,); `products` for a record that it lacks.

    Raises `ProtocolAborted` for what is no ciphertext.
    """
    key = encryption.key
    packing = shape.packing(key.bits)
    count = packing.count(shape.slots)
    masks = [packing.masks(count) for _ in range(shape.products)]
    sums = [list(map(key.refreshed, encryption.encrypt(mask))) for mask in masks]
    for start in range(0, shape.records, MESSAGE_PLAINTEXTS):
        held = codes[start : start + MESSAGE_PLAINTEXTS]
        received = key.decode(wire.receive(peer, len(held) * count * key.ciphertext_bytes), peer)
        for record, code in enumerate(held):
            if code < shape.products:
                own = received[record * count : (record + 1) * count]
                sums[code] = list(map(key.add, sums[code], own))
    for ciphertexts in sums:
        wire.send(peer, key.encode(ciphertexts))
    return np.stack([np.uint32(0) - packing.unpack(mask, shape.slots) for mask in masks])
