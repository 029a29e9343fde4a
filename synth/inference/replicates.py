"""Tables that differ as releases would: from how much an estimate differs between them, its error follows.

Problem: who only has tools for tables cannot use formulas (`answers.py`). A table drawn again from the same
model differs from the first by nothing that matters: the noise of the privacy, and who happened to take part,
are in the model. So each replicate is a release of its own, made of the model (a parametric bootstrap, Efron
1979): rows drawn from it independently, as many as there were people; their marginals, with the noise of each
measurement; a model fitted to these; a table drawn from that.

Of a number t, with t_0 that of the released table and t_1..t_m those of the replicates,

    t_0 +- q sqrt((1 + 1/m) b),     b = sum (t_i - mean)^2 / (m - 1),     q of Student's t with m - 1 degrees

holds the people's value about as often as it says, where a released marginal holds the columns that t needs
together (`docs/design/inference.md` 11). Released values only: post-processing, and the generator's seed
protects nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Level
from synth.inference.licence import readable
from synth.mrf import Measurement, Model, fit
from synth.synthesis import Measured

DRAWN, MAX_DRAWN = 20, 1 << 20
"""Rows of the model from which a replicate's people are drawn with replacement, for each of them, and at
most: rows of a model come nearer to its marginals than independent ones would."""
ITERATIONS = 300
MAX_REPLICATES = 1000


def draw_tables(made: Replicates, number: int, rows: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """So many replicates' tables: codes, (rows, columns in domain order)."""
    for place in range(number):
        rng = np.random.default_rng([seed, place, 1])
        yield made.model(rng).sample(rows, rng)


class Replicates:
    """The replicates of a release."""

    def __init__(self, model: Model, measurements: Sequence[Measured], facts: Mapping[str, Any]) -> None:
        """facts: run.json. Raises `UnfitRun` for a run whose measurements do not count all rows."""
        self._model, self._measured = model, readable(facts, measurements)
        self._people = max(1, round(model.total))
        self._levels = {level.name: level for m in self._measured for level in m.levels}

    def model(self, rng: np.random.Generator) -> Model:
        """One more model, fitted to a release that might have been."""
        rows = max(self._people, min(DRAWN * self._people, MAX_DRAWN))
        model_rows = self._model.sample(rows, rng, sweeps=0)
        people = model_rows[rng.integers(rows, size=self._people)]
        return fit(
            self._model.sizes,
            [self._noisy(m, people, rng) for m in self._measured],
            warm_start=self._model,
            levels=self._levels,
            impossible=self._model.impossible,
            iterations=ITERATIONS,
        )

    def _noisy(self, m: Measured, people: NDArray[np.int64], rng: np.random.Generator) -> Measurement:
        place = {name: at for at, name in enumerate(self._model.sizes)}
        codes, shape = [], []
        for name in m.clique:
            level: Level | None = self._levels.get(name)
            column = people[:, place[name if level is None else level.column]]
            codes.append(column if level is None else np.array(level.bins)[column])
            shape.append(self._model.sizes[name] if level is None else level.size)
        cells = np.ravel_multi_index(codes, shape) if codes else np.zeros(len(people), np.int64)
        counts = np.bincount(cells, minlength=int(np.prod(shape))).astype(np.float64)
        return Measurement(
            m.clique, counts + rng.normal(0.0, float(m.sigma2) ** 0.5, counts.size), float(m.sigma2)
        )
