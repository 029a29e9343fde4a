"""What a synthesizer releases: the marginals that were measured, what was picked, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synth.budget.small.fallback import sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Level
    from synth.mrf import Model
    from synth.prior import Verdict


def without_levels(clique: Clique, levels: Iterable[Level]) -> Clique:
    """The columns that a clique's names stand for, in its order."""
    of = {level.name: level.column for level in levels}
    return tuple(of.get(name, name) for name in clique)


@dataclass(frozen=True)
class Measured:
    """One noisy marginal: int64 counts in row-major order of the clique's columns; round 0 is what precedes selections.

    levels: of the clique's names, those that stand for bins of a column. rows: the noisy number of rows that were counted, where
    these are some custodians' only; None: everybody's.
    """

    clique: Clique
    sigma2: Fraction
    round: int
    values: NDArray[np.int64]
    levels: tuple[Level, ...] = ()
    rows: int | None = None

    @property
    def columns(self) -> Clique:
        """The columns that the clique's names stand for, in its order."""
        return without_levels(self.clique, self.levels)

    @property
    def bins(self) -> dict[str, tuple[int, ...]]:
        """The bin of every value, for each column that is measured over bins."""
        return {level.column: level.bins for level in self.levels}

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of its counts as a table. sizes: of the columns."""
        return tuple(max(self.bins[name]) + 1 if name in self.bins else sizes[name] for name in self.columns)


def pooled(measured: Sequence[Measured]) -> tuple[NDArray[np.float64], float]:
    """What all measurements of a clique say together, weighted by precision: counts, and the variance of each cell."""
    if len(measured) == 1:
        return measured[0].values.astype(np.float64), float(measured[0].sigma2)
    precisions = [1 / float(m.sigma2) for m in measured]
    variance = 1 / sum(precisions)
    return variance * np.tensordot(precisions, [m.values.astype(np.float64) for m in measured], 1), variance


@dataclass(frozen=True)
class Synthesis:
    """The release of a synthesizer. rows: how many rows the table is to have (public: the study's number or the noisy total).

    selections: one per event of a selection, in order, as it was asked; () where no candidate was left to be picked. levels: all
    that selections and measurements name.
    noise_share: if the table's columns are independent because joint marginals were not worth their noise, how much it was.
    table: codes, (rows, columns in domain order), where the table is not drawn from the model, which then describes it.
    prior: how what the run inherited fared.
    """

    model: Model
    measurements: tuple[Measured, ...]
    selections: tuple[Clique, ...]
    noisy_total: float
    rows: int
    noise_share: float | None = None
    levels: tuple[Level, ...] = ()
    table: NDArray[np.int64] | None = None
    prior: Verdict | None = None

    @property
    def selected(self) -> tuple[Clique, ...]:
        """The columns of what was picked; the measurement of round i is that of the i-th, if it was measured."""
        return tuple(without_levels(clique, self.levels) for clique in self.selections if clique)

    @property
    def fallback(self) -> str | None:
        """A sentence that says that the columns are independent, and why; None if they are not."""
        if self.noise_share is None:
            return None
        tried = any(len(m.clique) > 1 for m in self.measurements)
        return sentence(self.noisy_total, self.noise_share, tried=tried)
