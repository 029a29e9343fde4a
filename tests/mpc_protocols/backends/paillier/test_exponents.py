"""Tables by one-hot exponents equal the counts, whoever lacks which record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.paillier.exponents import TableShape, of_exponents, of_products
from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork, run_parties
from mpc_protocols.wire import Wire


@pytest.mark.parametrize("records, slots, products", [(1, 2, 2), (300, 5, 3), (40, 37, 1)])
def test_shares_add_up_to_the_table(key: PrivateKey, records: int, slots: int, products: int) -> None:
    """37 categories need three plaintexts at this key; 300 records two messages."""
    rng = np.random.default_rng()
    a, b = rng.integers(0, slots + 1, records), rng.integers(0, products + 1, records)
    shape = TableShape(records, slots, products)
    encryption = Encryption(key.public)

    def party(wire: Wire) -> Elements:
        if wire.me == 0:
            return of_exponents(wire, 1, key, shape, a)
        return of_products(wire, 0, encryption, shape, b)

    shares = run_parties([party] * 2, computing=2)
    table = np.zeros((products + 1, slots + 1), np.uint32)
    np.add.at(table, (b, a), 1)
    np.testing.assert_array_equal(shares[0] + shares[1], table[:-1, :-1])


class WithoutCoins(Encryption):
    """Whose ciphertexts are 1 + n X."""

    def _power(self, exponent: bytes) -> Any:
        return self._lowered


def test_the_owner_of_exponents_cannot_see_which_coins_were_added_up(key: PrivateKey) -> None:
    """It knows those of every record; those of a mask are short and do not hide how many of them there are."""
    shape, frames = TableShape(3, 2, 2), list[Frame]()

    def party(wire: Wire) -> Any:
        if wire.me == 0:
            return of_exponents(wire, 1, key, shape, np.array([0, 1, 1]))
        return of_products(wire, 0, WithoutCoins(key.public), shape, np.array([2, 2, 2]))

    MemoryNetwork(2, 2, tap=frames.append).run([party] * 2)
    size = key.public.ciphertext_bytes
    seen = [int.from_bytes(frame.payload, "big") for frame in frames if len(frame.payload) == size]
    assert len(seen) == 2 and all(value % int(key.public.n) != 1 for value in seen)
