"""Whether the model of an algorithm stays within max_model_mb, and memory for a larger one is never asked for.

Any two of the columns fit into the model, and all of them together would take as many times that as a column has values: whoever
builds first and looks afterwards asks for it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Handle
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle
from runner.review.conformance.algorithm.runs import conducted, oracle_of, plan_of, tables_of, world
from runner.review.conformance.checks import expect
from synth.algorithm import Algorithm
from synth.budget.accounting import Accountant
from synth.config import AlgorithmConfig, ModelConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDE: Final = world("three columns of 150 values", dict.fromkeys("abc", 150), 2, 3000)
MAX_MB, MAX_ASKED_MB = 0.4, 50.0
"""Of the model: two pairs of WIDE take 0.34 MiB, all three columns 26. Of all that a run asks for at a time: a fit, which
remembers its steps, takes some sixty times the model's size."""


class Metered(RelayedOracle):
    """Looks how much memory is asked for, but for what its own answers take. most: bytes at a time, so far."""

    most = 0

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        self.most = max(self.most, tracemalloc.get_traced_memory()[1])
        answer = super().measure(handles, sigma2)
        tracemalloc.reset_peak()
        return answer


def check_model_size(algorithm: Algorithm[Any, Any], config: AlgorithmConfig) -> None:
    """Run on WIDE with a small limit: refused, or within it from beginning to end."""
    if not isinstance(config, ModelConfig):
        return
    config = replace(config, max_model_mb=MAX_MB)
    try:
        plan = plan_of(algorithm, config, WIDE)
    except StudyInvalid:
        return
    guard = Accountant(plan.budget)
    oracles = [Metered(oracle_of(plan, on, guard)) for on in tables_of(algorithm, plan, WIDE)]
    tracemalloc.start()
    try:
        synthesis = conducted(algorithm, plan, oracles)
    except StudyInvalid:
        synthesis = None
    finally:
        asked_mb = max([tracemalloc.get_traced_memory()[1], *(oracle.most for oracle in oracles)]) / 2**20
        tracemalloc.stop()
    expect(
        asked_mb <= MAX_ASKED_MB,
        f"with max_model_mb = {MAX_MB} a run must not ask for {asked_mb:.0f} MiB: look at a model's size before it is made.",
    )
    if synthesis is not None:
        size = synthesis.model.size_mb
        expect(size <= MAX_MB, f"with max_model_mb = {MAX_MB} the model must not have {size:.2f} MiB.")
