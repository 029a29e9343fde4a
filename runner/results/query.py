"""Marginals of a finished run's model, with what noise alone makes of them. No further budget.

A marginal that was counted has a standard error: that of its noisy counts, which the model follows. One that
lies within several counted ones has the least that these give together. One whose columns were never counted
together has none: what the model says of their relation follows from other measurements and may be far off.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from mpc_protocols.errors import UsageError
from runner.results.finished_run import FinishedRun
from runner.results.linked import check_of_people
from runner.study.declared.table import nearest
from synth.synthesis import Measured

MAX_LISTED_CELLS = 1 << 22
NORMAL_95 = NormalDist().inv_cdf(0.975)
Basis = Literal["measured", "measured over bins", "not measured together"]
"""What a marginal rests on."""


@dataclass(frozen=True)
class Answer:
    """A marginal: labels of its cells' values, expected counts and shares, cell by cell in row-major order.

    standard_error: of a count, from the noise; None where the columns were not counted together at their full
    resolution.
    """

    columns: tuple[str, ...]
    total: float
    basis: Basis
    standard_error: float | None
    values: Sequence[tuple[str, ...]]
    counts: Sequence[float]

    def interval(self, count: float) -> tuple[float, float] | None:
        """Where a count lies at 95 %, as far as the noise goes; None without a standard error."""
        if self.standard_error is None:
            return None
        half = NORMAL_95 * self.standard_error
        return max(0.0, count - half), max(0.0, count + half)

    @property
    def shares(self) -> Sequence[float]:
        """Counts over the total."""
        return [count / (self.total or 1.0) for count in self.counts]


def ask(run: FinishedRun, measurements: Sequence[Measured], columns: Sequence[str], place: str) -> Answer:
    """The marginal of these columns. place: the run, for sentences. Raises `UsageError` for columns that
    cannot be listed."""
    domain, asked = run.domain, tuple(columns)
    for name in asked:
        if name not in domain:
            apart = re.split(r"\s*[,:;+*&]\s*|\s+x\s+", name)
            if len(apart) > 1 and all(part in domain for part in apart):
                raise UsageError(
                    f"{place} has no column {name}; write {' '.join(apart)}, with blanks between them."
                )
            raise UsageError(
                f"{place} has no column {name}{nearest(name, domain.names)}; its columns: {', '.join(domain.names)}."
            )
    check_of_people(run.facts, domain, asked, "A marginal")
    if len(set(asked)) != len(asked) or not asked:
        raise UsageError("A column is named twice, or none is; name each once.")
    if (cells := domain.cells(asked)) > MAX_LISTED_CELLS:
        raise UsageError(
            f"{' x '.join(asked)} has {cells:,} cells; at most {MAX_LISTED_CELLS:,} can be listed: name fewer columns."
        )
    labels = itertools.product(
        *([domain[name].label(code) for code in range(domain[name].size)] for name in asked)
    )
    return Answer(
        asked,
        run.model.total,
        basis(run, measurements, asked),
        _with_waves(standard_error(measurements, run.domain.sizes, asked), run),
        list(labels),
        run.model.marginal(asked).tolist(),
    )


def _with_waves(error: float | None, run: FinishedRun) -> float | None:
    """The standard error of a sum over waves, of which the run has measured the last
    (`docs/reference/outputs.md`)."""
    waves = (run.facts.get("contributors") or {}).get("after", [])
    return error and error * math.sqrt(1 + sum(float(wave["noise"]) for wave in waves))


def basis(run: FinishedRun, measurements: Sequence[Measured], columns: Sequence[str]) -> Basis:
    """Whether these columns were counted together. A run without counts (a model of another kind) goes by the
    model's cliques."""
    asked = set(columns)
    if any(asked <= set(measured.clique) for measured in measurements):
        return "measured"
    if any(asked <= set(measured.columns) for measured in measurements):
        return "measured over bins"
    if not measurements and (len(asked) == 1 or any(asked <= set(clique) for clique in run.model.cliques)):
        return "measured"
    return "not measured together"


def standard_error(
    measurements: Sequence[Measured], sizes: dict[str, int], columns: Sequence[str]
) -> float | None:
    """Of one cell's count, by inverse-variance weights over the released marginals that hold these columns;
    None if none does."""
    asked, cells = set(columns), math.prod(sizes[name] for name in columns)
    weights = [
        cells / (float(measured.sigma2) * len(measured.values))
        for measured in measurements
        if asked <= set(measured.clique) and measured.sigma2 > 0
    ]
    return sum(weights) ** -0.5 if weights else None
