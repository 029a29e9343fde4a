"""What a round costs when nothing is in it: a chain of multiplications of a few elements (one message each
way per round)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_protocols.backends.replicated.sharing.ring import RingShare, multiply, open_ring
from mpc_protocols.wire import Wire
from runner.bench.parameters import Parameter, Params
from runner.bench.registry import Kernel, Task
from runner.bench.tables.inputs import expect, shared, trio_of, vector

ROUNDS = Parameter("rounds", "rounds, each needing the one before", (50,), 1, 10**5)
WIDTH = Parameter("width", "elements of 32 bits in each message", (16,), 1, 2**24)


class Rounds(Kernel):
    """x, x^2, x^3, ... modulo 2^32."""

    name, purpose, counts = "rounds", "rounds of almost nothing: the latency of the session", "rounds"
    parameters = (ROUNDS, WIDTH)

    def amount(self, params: Params) -> float:
        return float(params["rounds"])

    def prepare(self, wire: Wire, params: Params) -> Task:
        trio, rounds = trio_of(wire), int(params["rounds"])
        x = _input(params)
        share = shared(trio, x)

        def run() -> RingShare:
            power = share
            for _ in range(rounds):
                power = multiply(trio, power, share)
            return power

        def check(power: Any) -> None:
            expect(self.name, open_ring(trio, power), _plain(x, rounds))

        return Task(run, check)

    def floor(self, params: Params) -> Task:
        x = _input(params)
        return Task(lambda: _plain(x, int(params["rounds"])))

    def peer(self, params: Params) -> Params:
        return {"rounds": min(int(params["rounds"]), 50), "width": min(int(params["width"]), 1000)}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        secure = mpc.SecFld(modulus=2**61 - 1)  # products of integers would need more bits each round
        x = mpc.input(secure.array(np.abs(vector(int(params["width"]), 32, 1)).astype(object)), senders=0)
        mpc.run(mpc.gather(x))

        def run() -> Any:
            power = x
            for _ in range(int(params["rounds"])):
                power = mpc.np_multiply(power, x)
            return mpc.run(mpc.gather(power))

        return Task(run)


def _input(params: Params) -> Any:
    return vector(int(params["width"]), 32, 1).astype(np.uint32)


def _plain(x: Any, rounds: int) -> Any:
    power = x
    for _ in range(rounds):
        power = power * x
    return power


BENCH = Rounds()
