"""A table over two owners' columns: A^T B of their one-hot rows, the third party helps (`replicated.matmul`, `engine.md` 2).

The owners' inputs are in the time: a matrix that only its owner knows becomes a masked one that travels, block by block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.matmul import owned_matmul
from mpc_protocols.replicated.ring import open_ring
from mpc_protocols.replicated.trio import UInt
from mpc_protocols.wire import Wire
from runner.bench.inputs import expect, trio_of
from runner.bench.parameters import ROWS, Parameter, Params
from runner.bench.registry import Kernel, Task

VALUES = Parameter("values", "one-hot columns of each owner", (200,), 1, 10**5)
RING = Parameter("ring", "bits of the ring of the counts", (32,), choices=(16, 32, 64))
_RINGS: dict[int, UInt] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_GROUP = 20


class Contingency(Kernel):
    """All pairs of P0's and P1's columns at once: `values` times `values` counts."""

    name, purpose, counts = "contingency", "the table of two owners' columns, A^T B of one-hot rows, sharing included", "rows"
    parameters = (ROWS.of(45_000), VALUES, RING)

    def amount(self, params: Params) -> float:
        return float(params["rows"])

    def prepare(self, wire: Wire, params: Params) -> Task:
        trio, rows, values = trio_of(wire), int(params["rows"]), int(params["values"])
        ring = _RINGS[int(params["ring"])]
        mine = _one_hot(rows, values, wire.me) if wire.me in (0, 1) else None

        def check(table: Any) -> None:
            if wire.me == 0:
                wanted = _plain(_one_hot(rows, values, 0), _one_hot(rows, values, 1)).astype(ring)
                expect(self.name, open_ring(trio, table), wanted)
            else:
                open_ring(trio, table)

        return Task(lambda: owned_matmul(trio, (0, 1), mine, rows, (values, values), ring, 1), check)

    def floor(self, params: Params) -> Task:
        a, b = (_one_hot(int(params["rows"]), int(params["values"]), owner) for owner in (0, 1))
        return Task(lambda: _plain(a, b))

    def peer(self, params: Params) -> Params:
        return {"rows": 500, "values": 20, "ring": 32}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """A product of two secret matrices; sharing them is in the time here too."""
        secure = mpc.SecInt(32)
        rows, values = int(params["rows"]), int(params["values"])
        own = [_one_hot(rows, values, owner).astype(np.int64).astype(object) for owner in (0, 1)]

        def run() -> Any:
            a, b = (mpc.input(secure.array(matrix), senders=owner) for owner, matrix in enumerate(own))
            table = a.T @ b
            mpc.run(mpc.gather(table))
            return table

        def check(table: Any) -> None:
            found = np.asarray(mpc.run(mpc.output(table))).astype(np.int64)
            expect("contingency (MPyC)", found, (own[0].T @ own[1]).astype(np.int64))

        return Task(run, check)


def _one_hot(rows: int, values: int, owner: int) -> NDArray[np.uint8]:
    """Columns of up to twenty values each, one-hot side by side: shape (rows, values)."""
    rng = np.random.default_rng([7, owner, rows, values])
    matrix = np.zeros((rows, values), np.uint8)
    for start in range(0, values, _GROUP):
        width = min(_GROUP, values - start)
        matrix[np.arange(rows), start + rng.integers(0, width, rows)] = 1
    return matrix


def _plain(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The exact counts, by floats: they are far below 2^53."""
    product: NDArray[np.int64] = np.rint(a.T.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return product


BENCH = Contingency()
