"""The public part of a synthesis: fitting the graphical model to noisy marginals, at the leading party
(`synth.mrf`).

The domain is invented and like Adult's: 14 columns of 2 to 100 values; a wider one has others of 2 to 12
values. Measured are all single columns and then, one more each round as AIM does it, random pairs and triples
of a bounded size. The secure part of a round is to be negligible beside this.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from mpc_protocols.functionality import Clique
from mpc_protocols.wire import Wire
from runner.bench.parameters import ROWS, Parameter, Params
from runner.bench.registry import Kernel, Task
from synth.mrf import Measurement, Model, fit, model_size_mb

ADULT = (74, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 90, 96, 42)
COLUMNS = Parameter(
    "columns", "columns of the table: the first 14 like Adult's, others small", (len(ADULT),), 3, 200
)
MARGINALS = Parameter("marginals", "measured pairs and triples, one more in each round", (10,), 0, 100)
ITERATIONS = Parameter("iterations", "most iterations of a round's fit", (100,), 1, 10**6)
_MODEL_MB = 4.0
_SIGMA = 30.0


class Fit(Kernel):
    """The fits of a whole run, each starting from the last."""

    name, purpose, counts = "fit", "the public model fits of a run, at the leading party", "fits"
    parameters = (COLUMNS.of(14, 60, 100), MARGINALS, ITERATIONS, ROWS)

    def amount(self, params: Params) -> float:
        return float(params["marginals"]) + 1

    def prepare(self, wire: Wire, params: Params) -> Task:
        if wire.me != 1:
            return Task(lambda: None)
        sizes = sizes_of(int(params["columns"]))
        rounds = measured_by_round(sizes, params)

        def run() -> Model:
            model = None
            for measurements in rounds:
                model = fit(sizes, measurements, warm_start=model, iterations=int(params["iterations"]))
            assert model is not None
            return model

        return Task(run)


def sizes_of(columns: int) -> dict[str, int]:
    """Numbers of values of an invented table with Adult's proportions, and more columns of few values."""
    sizes = [*ADULT, *(2 + number % 11 for number in range(columns - len(ADULT)))]
    return {f"c{number}": size for number, size in enumerate(sizes[:columns])}


def measured_by_round(sizes: dict[str, int], params: Params) -> list[list[Measurement]]:
    """The measurements of each round: all single columns, then one more clique each time, within the model's
    limit."""
    rng = np.random.default_rng(3)
    from runner.forecast.presumed.presumed_tables import (
        PresumedTable,  # not at every party of every benchmark
    )

    table = PresumedTable(sizes, int(params["rows"]))
    wanted = [
        clique
        for degree in (2, 3)
        for clique in itertools.combinations(sizes, degree)
        if math.prod(sizes[name] for name in clique) <= 20_000
    ]
    chosen: list[Clique] = [(name,) for name in sizes]
    one_way = len(chosen)
    for place in rng.permutation(len(wanted)):
        if len(chosen) == one_way + int(params["marginals"]):
            break
        if model_size_mb(sizes, [*chosen, wanted[place]]) <= _MODEL_MB:
            chosen.append(wanted[place])
    measured = [
        Measurement(clique, values + rng.normal(0, _SIGMA, len(values)), _SIGMA**2)
        for clique, values in zip(chosen, table.counts(chosen), strict=True)
    ]
    return [measured[:count] for count in range(one_way, len(measured) + 1)]


BENCH = Fit()
