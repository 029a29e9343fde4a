"""Discrete Gaussian noise that nobody knows: 64-bit half table and a sign (`docs/design/mechanisms.md` 3,
`engine.sampling`).

Drawn on a backend's own gates, in the form in which its engine adds noise to counts; opened only for the
check.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.engine.noise.sampling import gaussian_noise
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import CosynthError
from mpc_protocols.mechanisms.gaussian import BITS, reference_array, sampler
from mpc_protocols.wire import Wire
from runner.bench.by_backend import EngineKernel, facts_of, party_of, prove
from runner.bench.parameters import BACKEND, PARTIES, PROOFS, SIGMA, Parameter, Params
from runner.bench.registry import Task

SAMPLES = Parameter("samples", "samples of one batch", (10**5,), 1, 2**26)


class Gaussian(EngineKernel):
    """A batch of samples in Z_2^32."""

    name, purpose, counts = (
        "gaussian",
        "discrete Gaussian noise on shares, of exactly known distribution",
        "samples",
    )
    parameters = (SAMPLES, SIGMA, BACKEND, PARTIES, PROOFS)

    def amount(self, params: Params) -> float:
        return float(params["samples"])

    def processes(self, params: Params) -> int:
        """Who contributes has no part in noise."""
        return self.computing(params)

    def prepare(self, wire: Wire, params: Params) -> Task:
        of, count = sampler(_variance(params)), int(params["samples"])
        engine = party_of(wire, facts_of(wire, {"x": 2}, "add-remove", 1, params), None, params).engine
        gates, drawn = engine.gates, 0

        def run() -> Any:
            nonlocal drawn
            drawn += 1
            release = binding(wire.session_id, b"bench", drawn.to_bytes(8, "big"))
            noise = gaussian_noise(gates, gates.release_bits(release), of, count, np.uint32)
            prove(engine, params)
            return noise

        def check(noise: Any) -> None:
            """The sum of squares is within 12 standard deviations (kurtosis 3 at most, up to the grid)."""
            opened = engine.reveal(noise).astype(np.float64)
            expected = float(_variance(params))
            wrong = abs(float(np.square(opened).mean()) / expected - 1) > 12 * math.sqrt(3 / count) + 0.01
            if wrong or float(np.abs(opened).max()) > of.bound:
                raise CosynthError(
                    "The benchmark gaussian drew noise of a wrong spread; its figures mean nothing, "
                    "please report it."
                )

        return Task(run, check)

    def floor(self, params: Params) -> Task:
        of, count, rng = sampler(_variance(params)), int(params["samples"]), np.random.default_rng(1)

        def run() -> Any:
            shape = (len(of.parts), count)
            return reference_array(
                of,
                rng.integers(0, 2**64 - 1, shape, np.uint64, endpoint=True),
                rng.integers(0, 1, shape, np.uint8, endpoint=True),
            )

        return Task(run)

    def peer(self, params: Params) -> Params | None:
        return super().peer(params) if _thresholds(params) <= 2000 else None

    def small(self, params: Params) -> Params:
        return {"samples": max(1, 300 // _thresholds(params)), "sigma": params["sigma"]}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """Compare 64 random bits with every threshold of the half table; a random sign."""
        secure = mpc.SecInt(BITS + 2)
        of, count = sampler(_variance(params)), int(params["samples"])
        powers = np.array([1 << j for j in range(BITS)], dtype=object)

        def run() -> Any:
            total: Any = 0
            for multiplier, table in of.parts:
                uniform = mpc.np_random_bits(secure, count * BITS).reshape(count, BITS) @ powers
                levels = np.array(table.thresholds, dtype=object)
                reached = 1 - (uniform.reshape(count, 1) < levels.reshape(1, -1))
                sign = mpc.np_random_bits(secure, count)
                total = total + multiplier * mpc.np_multiply(1 - 2 * sign, mpc.np_sum(reached, axis=1))
            return mpc.run(mpc.gather(total))

        return Task(run)


def _thresholds(params: Params) -> int:
    return sum(len(table.thresholds) for _, table in sampler(_variance(params)).parts)


def _variance(params: Params) -> Fraction:
    return Fraction(params["sigma"]) ** 2


BENCH = Gaussian()
