"""Figures of the report: how the synthetic rows compare with the noisy measurements, and what the model ties
together.

Everything is computed from released values: noisy counts, synthetic rows and the model fitted to the former.
Distances are between shares (counts over their own total), L1, from 0 to 2; the scale beside them is the L1
distance that the noise alone is expected to put into a marginal of n cells, sqrt(2/pi) sigma n / N
(`docs/design/algorithms.md` 1, AIM's penalty).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from runner.report.files import Clique, Run
from synth.judgement.relations import cramers_v
from synth.synthesis import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Agreement:
    """One measured marginal against the synthetic rows; distance and noise as L1 of shares. bins: how many,
    where it has bins."""

    clique: Clique
    bins: Mapping[str, int]
    cells: int
    sigma: float
    distance: float
    noise: float


@dataclass(frozen=True)
class OneWay:
    """One column's shares per code: of the synthetic rows and, with standard error `spread`, as measured
    (None: never)."""

    name: str
    synthetic: NDArray[np.float64]
    measured: NDArray[np.float64] | None
    spread: float
    source: Clique | None


def synthetic_counts(
    run: Run, clique: Clique, bins: Mapping[str, Sequence[int]] | None = None
) -> NDArray[np.int64]:
    """Counts of the synthetic rows, row-major in the clique's columns; bins: of the values of those that are
    counted coarsely."""
    index, cells = np.zeros(len(run.codes), dtype=np.int64), 1
    for name in clique:
        of = np.arange(run.domain.sizes[name])
        if bins and name in bins:
            of = np.asarray(bins[name], dtype=np.int64)
        codes, size = of[run.codes[:, run.domain.names.index(name)]], int(of.max()) + 1
        index, cells = index * size + codes, cells * size
    return np.bincount(index, minlength=cells)


def sizes_of(measurement: Measured) -> dict[str, int]:
    """How many bins a measurement has of each column that it counts over bins."""
    return {level.column: level.size for level in measurement.levels}


def counted(run: Run, measurement: Measured) -> float:
    """The noisy rows that a measurement is about: of the custodians that were asked, else of all; no fewer
    than the standard deviation of one of its counts, below which nobody knows how many there are."""
    rows = run.noisy_total if measurement.rows is None else float(measurement.rows)
    return max(rows, math.sqrt(measurement.sigma2), 1.0)


def agreements(run: Run) -> list[Agreement]:
    """Every measurement in the order it was taken."""
    rows, found = max(len(run.codes), 1), []
    for measurement in run.measurements:
        cells, sigma, total = (
            len(measurement.values),
            math.sqrt(measurement.sigma2),
            counted(run, measurement),
        )
        shares = synthetic_counts(run, measurement.columns, measurement.bins) / rows
        distance = float(np.abs(measurement.values / total - shares).sum())
        noise = math.sqrt(2 / math.pi) * sigma * cells / total
        found.append(Agreement(measurement.columns, sizes_of(measurement), cells, sigma, distance, noise))
    return found


def one_way(run: Run) -> list[OneWay]:
    """Each column of the domain: measured by itself, else summed out of the measurement with the least noise
    per value."""
    rows, found = max(len(run.codes), 1), []
    for name in run.domain.names:
        shares = synthetic_counts(run, (name,)) / rows
        alone = [m for m in run.measurements if m.clique == (name,)]
        wider = [m for m in run.measurements if name in m.clique]
        if alone:
            weights = np.array([counted(run, m) ** 2 / float(m.sigma2) for m in alone])
            each = np.stack([m.values / counted(run, m) for m in alone])
            mean = np.asarray(weights @ each) / weights.sum()
            found.append(OneWay(name, shares, mean, float(weights.sum() ** -0.5), (name,)))
        elif wider:
            best = min(wider, key=lambda m: _variance_of_sum(run, m, name) / counted(run, m) ** 2)
            total = counted(run, best)
            spread = math.sqrt(_variance_of_sum(run, best, name)) / total
            found.append(OneWay(name, shares, _summed(run, best, name) / total, spread, best.columns))
        else:
            found.append(OneWay(name, shares, None, 0.0, None))
    return found


def _variance_of_sum(run: Run, measurement: Measured, name: str) -> float:
    return float(measurement.sigma2) * len(measurement.values) / run.domain.sizes[name]


def _summed(run: Run, measurement: Measured, name: str) -> NDArray[np.float64]:
    table = measurement.values.reshape(measurement.shape(run.domain.sizes))
    kept = measurement.clique.index(name)
    return np.asarray(
        table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != kept)), dtype=np.float64
    )


def strength(run: Run, pair: Clique, counts: NDArray[np.float64]) -> float:
    """Cramer's V of the model's counts of two columns."""
    return cramers_v(np.asarray(counts, dtype=np.float64).reshape([run.domain.sizes[name] for name in pair]))


def strengths(run: Run, cliques: Sequence[Clique]) -> dict[Clique, float]:
    """Cramer's V in the model of every two columns of these, each pair in the order of its first clique."""
    pairs = list(
        dict.fromkeys(pair for clique in cliques for pair in combinations(run.domain.ordered(clique), 2))
    )
    return {
        pair: strength(run, pair, counts)
        for pair, counts in zip(pairs, run.model.marginals(pairs), strict=True)
    }


def associations(run: Run, names: Sequence[str]) -> NDArray[np.float64]:
    """Symmetric matrix of Cramer's V of the model, one row per name, ones on the diagonal."""
    place, found = {name: at for at, name in enumerate(names)}, np.eye(len(names))
    for (one, other), value in strengths(run, [tuple(names)]).items():
        found[place[one], place[other]] = found[place[other], place[one]] = value
    return found
