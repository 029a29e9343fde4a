"""Elementwise products of two secret vectors: one round, one ring element a product and party
(`docs/design/engine.md` 2.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.ring import multiply, open_ring
from mpc_protocols.wire import Wire
from runner.bench.parameters import BITS, CELLS, Params
from runner.bench.registry import Kernel, Task
from runner.bench.tables.inputs import expect, ring_of, shared, trio_of, vector

_OPENED = 1000


class Multiply(Kernel):
    """x * y modulo 2^bits."""

    name, purpose, counts = "multiply", "elementwise products of two secret vectors", "products"
    parameters = (CELLS, BITS.of(32, 64))

    def prepare(self, wire: Wire, params: Params) -> Task:
        trio, (x, y) = trio_of(wire), _input(params)
        first, second = shared(trio, x), shared(trio, y)

        def check(product: Any) -> None:
            expect(self.name, open_ring(trio, product[:_OPENED]), (x * y)[:_OPENED])

        return Task(lambda: multiply(trio, first, second), check)

    def floor(self, params: Params) -> Task:
        x, y = _input(params)
        return Task(lambda: x * y)

    def peer(self, params: Params) -> Params:
        return {"cells": 20_000, "bits": params["bits"]}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        secure = mpc.SecInt(int(params["bits"]))
        half = int(params["bits"]) // 2 - 2  # MPyC's integers do not wrap
        x, y = (
            mpc.input(secure.array(vector(int(params["cells"]), half, seed).astype(object)), senders=0)
            for seed in (1, 2)
        )
        mpc.run(mpc.gather(x, y))

        def run() -> Any:
            product = mpc.np_multiply(x, y)
            mpc.run(mpc.gather(product))
            return product

        def check(product: Any) -> None:
            first, second = (vector(int(params["cells"]), half, seed) for seed in (1, 2))
            expect(
                "multiply (MPyC)", np.asarray(mpc.run(mpc.output(product))).astype(np.int64), first * second
            )

        return Task(run, check)


def _input(params: Params) -> list[NDArray[Any]]:
    ring = ring_of(int(params["bits"]))
    return [vector(int(params["cells"]), int(params["bits"]), seed).astype(ring) for seed in (1, 2)]


BENCH = Multiply()
