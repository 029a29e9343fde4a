"""One table over a column of each of two owners, by ciphertexts of one-hot exponents
(`mpc_protocols/backends/paillier/exponents.py`).

The textbook protocol, which no backend uses: beside `contingency` it shows what a ciphertext per record
costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.paillier.backend import BACKEND, KEY_BITS
from mpc_protocols.backends.paillier.packing import key_bytes
from mpc_protocols.process.later import Later
from mpc_protocols.wire import Wire
from runner.bench.benches.contingency import VALUES
from runner.bench.parameters import ROWS, Params
from runner.bench.registry import Kernel, Task
from runner.bench.tables.inputs import expect

if TYPE_CHECKING:
    from mpc_protocols.backends.paillier import exponents, keys
else:
    exponents = Later("mpc_protocols.backends.paillier.exponents")
    keys = Later("mpc_protocols.backends.paillier.keys")

_EXPONENTS, _PRODUCTS = 0, 1
"""Wire numbers of the two owners; the third party waits."""


class ContingencyPaillier(Kernel):
    """`values` times `values` counts; each owner holds nine rows in ten. The key is made before."""

    name, purpose, counts = (
        "contingency-paillier",
        "one table over the columns of two owners, by Paillier ciphertexts of one-hot exponents",
        "rows",
    )
    parameters = (ROWS.of(2_000), VALUES.of(15))
    extra, requires = BACKEND.extra, BACKEND.requires

    def amount(self, params: Params) -> float:
        return float(params["rows"])

    def prepare(self, wire: Wire, params: Params) -> Task:
        if wire.me not in (_EXPONENTS, _PRODUCTS):
            return Task(lambda: None)
        shape = exponents.TableShape(int(params["rows"]), int(params["values"]), int(params["values"]))
        own = [_codes(params, owner) for owner in (_EXPONENTS, _PRODUCTS)]
        if wire.me == _EXPONENTS:
            key = keys.PrivateKey.generate(KEY_BITS)
            wire.send(_PRODUCTS, key.public.to_bytes())

            def check(share: Any) -> None:
                other = np.frombuffer(wire.receive(_PRODUCTS, share.nbytes), np.uint32)
                table = np.zeros((shape.products + 1, shape.slots + 1), np.uint32)
                np.add.at(table, (own[_PRODUCTS], own[_EXPONENTS]), 1)
                expect(self.name, share + other.reshape(share.shape), table[:-1, :-1])

            return Task(lambda: exponents.of_exponents(wire, _PRODUCTS, key, shape, own[_EXPONENTS]), check)
        public = keys.PublicKey.parse(wire.receive(_EXPONENTS, key_bytes(KEY_BITS)), KEY_BITS)
        encryption = keys.Encryption(public)
        return Task(
            lambda: exponents.of_products(wire, _EXPONENTS, encryption, shape, own[_PRODUCTS]),
            lambda share: wire.send(_EXPONENTS, share.tobytes()),
        )

    def floor(self, params: Params) -> Task:
        exponents, products = (_codes(params, owner) for owner in (_EXPONENTS, _PRODUCTS))
        categories = int(params["values"]) + 1
        return Task(lambda: np.bincount(products * categories + exponents, minlength=categories**2))


def _codes(params: Params, owner: int) -> NDArray[np.int64]:
    """An owner's categories; one row in ten has that of rows that it lacks."""
    values, rows = int(params["values"]), int(params["rows"])
    rng = np.random.default_rng([11, owner, rows])
    return np.where(rng.random(rows) < 0.1, values, rng.integers(0, values, rows))


BENCH = ContingencyPaillier()
