"""Where a table's error lies: what is left of it when parts of the run are made exact.

    sampling      the table's error less the model's own
    selection     what picking without noise takes off
    noise         what measuring without noise takes off
    structure     the error of the model when nothing has noise: what the measured marginals do not say
    two halves    beside them, the error of one random half of the rows as a table for the other: what chance alone makes of
                  half as many people

The parts need not add up to the whole: with less noise other marginals are picked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from runner.bench.utility.exactness import NOTHING, VARIANTS, Exactness
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import Table
from synth.judgement.metrics import workload_error


@dataclass(frozen=True)
class ErrorParts:
    """Errors of the workload's marginals over seeds. table, model: by what was exact, of the sampled rows and
    of the model's own answers. halves: of one half of the rows against the other."""

    row: str
    name: str
    epsilon: float
    table: Mapping[Exactness, Sequence[float]]
    model: Mapping[Exactness, Sequence[float]]
    halves: Sequence[float]

    @property
    def summary(self) -> dict[str, float]:
        """The parts, means over seeds."""
        table, model = ({e: fmean(of) for e, of in errors.items()} for errors in (self.table, self.model))
        selection, noise, both = VARIANTS[1:]
        return {
            "whole": table[NOTHING],
            "sampling": table[NOTHING] - model[NOTHING],
            "selection": table[NOTHING] - table[selection],
            "noise": table[NOTHING] - table[noise],
            "structure": model[both],
            "two halves": fmean(self.halves),
        }

    def lines(self, delta: float, first_seed: int) -> list[dict[str, Any]]:
        """A JSON line per run, and one with the summary."""
        about = {
            "bench": "utility",
            "algorithm": self.row,
            "table": self.name,
            "epsilon": self.epsilon,
            "delta": delta,
        }
        runs = [
            {**about, "exact": str(exact), "seed": first_seed + place, "err": err, "model_err": of_model}
            for exact in VARIANTS
            for place, (err, of_model) in enumerate(zip(self.table[exact], self.model[exact], strict=True))
        ]
        return [*runs, {**about, "parts": self.summary}]


def error_parts(row: Row, table: Table, epsilon: float, delta: float, seeds: Sequence[int]) -> ErrorParts:
    """Run every variant on every seed. Raises what a plan raises, and `UsageError` for a row without
    questions."""
    found = {
        exact: [run(row, table, epsilon, delta, seed, exact).scores for seed in seeds] for exact in VARIANTS
    }
    return ErrorParts(
        row.text,
        table.name,
        epsilon,
        {exact: [scores["err"] for scores in of] for exact, of in found.items()},
        {exact: [scores["model_err"] for scores in of] for exact, of in found.items()},
        [halves(table, seed) for seed in seeds],
    )


def halves(table: Table, seed: int) -> float:
    """The error of a random half of the rows as a table for the other half."""
    order = np.random.default_rng([seed, 21]).permutation(len(table.codes))
    middle = len(order) // 2
    one, other = table.codes[order[:middle]], table.codes[order[middle:]]
    return workload_error(one, other, table.domain, table.workload.cliques)
