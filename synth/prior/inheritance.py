"""What a run has of its prior: marginals that enter its fits beside those it measures, as sure as the data let them be.

At the start, once the columns are measured, the prior is raked to them and asked for the marginals it knows, at the run's own
resolutions; those that tell most beyond their columns come first, as long as the model holds them. After each batch what was
measured afresh tells how far the data have drifted (`drift`), and so the variance of each cell:

    N^2 (error + k^2 S) / n

A prior that the data reject is dropped for the rest of the run. Deterministic, and a function of public and released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synth.mrf import Measurement
from synth.prior.drift import Drift, Misfit
from synth.prior.sources import Known

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.mrf import Chains
    from synth.prior.sources import Prior
    from synth.run import Measured

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inherited:
    """A marginal of the prior at the run's resolution. shares: flat. error, spread: E and S of `drift`. told: L1 distance of the
    shares from the product of their columns."""

    columns: Clique
    clique: Clique
    shares: Array
    error: float
    spread: float
    told: float


@dataclass(frozen=True)
class Verdict:
    """How the prior fared. tested: fresh marginals that told. p_value: of these, were nothing changed. drift: k, the typical
    change of log odds. known: what is inherited by the release, with what drift adds to its error; nothing of a prior that was
    dropped."""

    tested: int
    p_value: float
    drift: float
    is_dropped: bool
    known: tuple[Known, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        known = [[list(of.columns), of.cells, of.error] for of in self.known]
        return {**vars(self), "known": known}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Verdict:
        """Inverse of `to_json`; of what somebody else has sent. Raises ValueError, KeyError or TypeError for anything else."""
        if (
            form.keys() != {"tested", "p_value", "drift", "is_dropped", "known"}
            or type(form["is_dropped"]) is not bool
        ):
            raise ValueError("verdict")
        known = tuple(Known.of(columns, cells, error) for columns, cells, error in form["known"])
        numbers = form["p_value"], form["drift"]
        if (
            type(form["tested"]) is not int
            or form["tested"] < 0
            or any(type(of) is not float for of in numbers)
        ):
            raise ValueError("numbers")
        if not 0 <= numbers[0] <= 1 or not 0 <= numbers[1] < math.inf or (form["is_dropped"] and known):
            raise ValueError("numbers")
        return cls(form["tested"], *numbers, form["is_dropped"], known)


class Inheritance:
    """The prior in one run."""

    def __init__(
        self,
        prior: Prior,
        columns: Mapping[str, tuple[Array, float]],
        rows: float,
        chains: Chains,
        within: Callable[[Clique, int], Clique | None],
        asked: Sequence[Clique],
    ) -> None:
        """columns: of each the model's counts, positive, and the variance they were measured with. chains: the run's levels.
        within: a set of columns at the finest resolution of at most so many cells. asked: sets of columns that the run may
        ask."""
        self._prior, self._columns, self._rows, self._chains = prior, columns, rows, chains
        self._raked = prior.raked({name: counts for name, (counts, _) in columns.items()})
        self._known = {known.columns: known for known in prior.known(asked)}
        self._drift = Drift.of(())
        self._is_dropped = False
        self._misfits: dict[int, Misfit] = {}
        found = [(known, within(known.columns, known.cells)) for known in self._known.values()]
        cliques = [(known, clique) for known, clique in found if clique is not None]
        tables = self._raked.shares([known.columns for known, _ in cliques])
        each = [
            self._inherited(known, clique, table)
            for (known, clique), table in zip(cliques, tables, strict=True)
        ]
        self.offered = sorted(each, key=lambda of: -of.told)
        self._held: list[Inherited] = []

    def hold(self, fits: Callable[[Clique], bool]) -> None:
        """Take those that the model holds. fits: whether it does, beside those for which it said so before."""
        self._held = [of for of in self.offered if fits(of.clique)]

    def judge(self, measurements: Sequence[Measured]) -> None:
        """Take note of everything that was measured."""
        if self._is_dropped:
            return
        for m in measurements:
            if len(m.clique) > 1 and id(m) not in self._misfits and (misfit := self._misfit(m)) is not None:
                self._misfits[id(m)] = misfit
        self._drift = Drift.of(tuple(self._misfits.values()))
        self._is_dropped = self._drift.rejects

    @property
    def measurements(self) -> list[Measurement]:
        """What the model is to follow of the prior."""
        if self._is_dropped:
            return []
        rows = self._rows
        return [
            Measurement(of.clique, rows * of.shares, rows**2 * self._error(of) / len(of.shares))
            for of in self._held
        ]

    @property
    def is_dropped(self) -> bool:
        """Whether the data have rejected it."""
        return self._is_dropped

    @property
    def verdict(self) -> Verdict:
        """How it fared."""
        held = () if self._is_dropped else self._held
        return Verdict(
            len(self._misfits),
            self._drift.p_value,
            math.sqrt(self._drift.k2),
            self._is_dropped,
            tuple(Known(of.columns, len(of.shares), self._error(of)) for of in held),
        )

    def _error(self, of: Inherited) -> float:
        return of.error + self._drift.beside(of.columns) * of.spread

    def _inherited(self, known: Known, clique: Clique, table: Array) -> Inherited:
        """table: the shares at full resolution."""
        chains = self._chains
        shares = chains.summed(table.reshape([chains.sizes[n] for n in known.columns]), known.columns, clique)
        axes = [
            shares.sum(axis=tuple(a for a in range(shares.ndim) if a != axis), keepdims=True)
            for axis in range(shares.ndim)
        ]
        error = known.error + (1 - float(np.square(shares).sum())) * (1 / self._prior.rows + 1 / self._rows)
        for name, column, part in zip(clique, known.columns, axes, strict=True):
            bins = np.array(chains.levels[name].bins) if name in chains.levels else np.arange(part.size)
            variance = self._columns[column][1] * np.bincount(bins) / self._rows**2
            given = np.divide(shares, part, out=np.zeros_like(shares), where=part > 0)
            error += float((np.square(given) * variance.reshape(part.shape)).sum())
        rest = reduce(np.multiply, [np.square(1 - part) for part in axes])
        spread = float((np.square(shares) * rest).sum())
        told = float(np.abs(shares - reduce(np.multiply, axes)).sum())
        return Inherited(known.columns, clique, shares.reshape(-1), error, spread, told)

    def _misfit(self, m: Measured) -> Misfit | None:
        """None of columns whose dependence the prior does not know."""
        holding = [known for columns, known in self._known.items() if set(m.columns) <= set(columns)]
        if not holding:
            return None
        best = min(holding, key=lambda known: known.error)
        [table] = self._raked.shares([m.columns])
        beside = self._inherited(Known(m.columns, best.cells, best.error), m.clique, table)
        rows = self._rows
        shape = [self._chains.sizes[name] for name in m.clique]
        shares = beside.shares.reshape(shape)
        product = reduce(
            np.multiply.outer,
            [
                shares.sum(axis=tuple(a for a in range(shares.ndim) if a != axis))
                for axis in range(shares.ndim)
            ],
        )
        values = m.values.reshape(shape)
        return Misfit(
            frozenset(m.columns),
            len(m.values),
            float(m.sigma2),
            float(np.square(values - rows * shares).sum()),
            float(np.square(values - rows * product).sum()),
            rows**2 * beside.error,
            rows**2 * beside.spread,
        )
