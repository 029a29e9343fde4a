"""What a run has of its prior: marginals that enter its fits beside those it measures, as sure as the data
let them be.

At the start, once the columns are measured, the prior is raked to them and asked for the marginals it knows,
at the run's own resolutions; those that tell most beyond their columns come first, as long as the model holds
them. After each batch what was measured afresh tells how far the data have drifted (`drift`), and so the
variance of each cell:

    N^2 (drawn + c error + k^2 S) / n

Where the columns have been measured again, it is raked again (`rake`): what is inherited would hold the
model to columns that were known less well.

A prior that the data reject is dropped for the rest of the run. Deterministic, and a function of public and
released values.
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
from synth.synthesis import pooled

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.mrf import Chains
    from synth.prior.sources import Prior
    from synth.synthesis import Measured

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inherited:
    """A marginal of the prior at the run's resolution. shares: flat. sampling, error, spread: D, E and S of
    `drift`. information: L1 distance of the shares from the product of their columns."""

    columns: Clique
    clique: Clique
    shares: Array
    sampling: float
    error: float
    spread: float
    information: float


@dataclass(frozen=True)
class Verdict:
    """How the prior fared. tested: fresh marginals that told. p_value: of these, were nothing changed. drift:
    k, the typical change of log odds. known: what is inherited by the release, with what drift adds to its
    error; nothing of a prior that was dropped."""

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
        """Inverse of `to_json`; of what somebody else has sent. Raises ValueError, KeyError or TypeError for
        anything else."""
        if (
            form.keys() != {"tested", "p_value", "drift", "is_dropped", "known"}
            or type(form["is_dropped"]) is not bool
        ):
            raise ValueError("A verdict on a prior has other keys.")
        known = tuple(Known.of(columns, cells, error) for columns, cells, error in form["known"])
        numbers = form["p_value"], form["drift"]
        if (
            type(form["tested"]) is not int
            or form["tested"] < 0
            or any(type(of) is not float for of in numbers)
        ):
            raise ValueError("A verdict on a prior has numbers that are out of range.")
        if not 0 <= numbers[0] <= 1 or not 0 <= numbers[1] < math.inf or (form["is_dropped"] and known):
            raise ValueError("A verdict on a prior has numbers that are out of range.")
        return cls(form["tested"], *numbers, form["is_dropped"], known)


class Inheritance:
    """The prior in one run: first its single columns, then, raked to what columns are then taken to be, the
    others (`join`)."""

    def __init__(self, prior: Prior, rows: float, chains: Chains, asked: Sequence[Clique]) -> None:
        """rows: about how many the run has. chains: the run's levels. asked: sets of columns that the run may
        ask for."""
        self._prior, self._rows, self._chains = prior, rows, chains
        self._known = {known.columns: known for known in prior.known(asked)}
        self._misfits: dict[int, Misfit] = {}
        self._columns_drift = self._drift = Drift()
        self._variance: Mapping[str, float] = {}
        self._raked = prior.unchanged()
        self._columns = self._single()
        self.offered: list[Inherited] = []
        self._chosen: list[Inherited] = []
        self._held: list[Inherited] = []
        self.is_dropped = False

    def join(
        self,
        columns: Mapping[str, tuple[Array, float]],
        within: Callable[[Clique, int], Clique | None],
        fits: Callable[[Clique], bool],
    ) -> None:
        """Rake, and take what the model holds. columns: as `rake`'s. within: a set of columns at the finest
        resolution of at most so many cells. fits: whether the model holds a clique beside those for which it
        was said before."""
        self.rake(self._rows, columns)
        joint = [known for columns_of, known in self._known.items() if len(columns_of) > 1]
        self.offered = sorted(self._inherited_of(joint, within), key=lambda of: -of.information)
        self._chosen = self._held = [of for of in self.offered if fits(of.clique)]

    def rake(self, rows: float, columns: Mapping[str, tuple[Array, float]]) -> None:
        """Bring what is inherited to these columns. rows: as the run knows them now. columns: of each that the
        prior has the model's counts, positive, and the variance they are known with."""
        self._rows, self._raked, self._variance = rows, self._prior.unchanged(), {}
        self._columns = self._single()
        self._raked = self._prior.raked({name: counts for name, (counts, _) in columns.items()})
        self._variance = {name: variance for name, (_, variance) in columns.items()}
        tables = self._raked.shares([of.columns for of in self._chosen])
        self._held = [
            self._inherited(self._known[of.columns], of.clique, table)
            for of, table in zip(self._chosen, tables, strict=True)
        ]
        self._misfits = {}

    def _single(self) -> dict[Clique, Inherited]:
        """The columns, of a prior as it is."""
        known = [of for columns, of in self._known.items() if len(columns) == 1]
        return {of.columns: of for of in self._inherited_of(known)}

    def judge(self, measurements: Sequence[Measured]) -> None:
        """Take note of everything that was measured."""
        if self.is_dropped:
            return
        single: dict[Clique, list[Measured]] = {}
        for m in measurements:
            if len(m.columns) == 1:
                single.setdefault(m.clique, []).append(m)
            elif id(m) not in self._misfits and (misfit := self._misfit([m])) is not None:
                self._misfits[id(m)] = misfit
        columns = [self._misfit(of) for of in single.values()]
        self._columns_drift = Drift.of([m for m in columns if m is not None])
        self._drift = Drift.of(list(self._misfits.values()))
        self.is_dropped = self._drift.rejects

    def loosen(self) -> None:
        """Until it is raked again, single columns only: a model of what it held would hold them fast."""
        self._held = []

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that the prior has."""
        return self._prior.names

    @property
    def is_followed(self) -> bool:
        """Whether the model has a dependence from it."""
        return bool(self._chosen) and not self.is_dropped

    def variance(self, column: str) -> float:
        """Of a cell of the column as it is inherited; infinite where it is not."""
        of = self._columns.get((column,))
        return math.inf if of is None or self.is_dropped else self._cell(of)

    @property
    def measurements(self) -> list[Measurement]:
        """What the model is to follow of the prior."""
        held = [] if self.is_dropped else [*self._columns.values(), *self._held]
        return [Measurement(of.clique, self._rows * of.shares, self._cell(of)) for of in held]

    @property
    def verdict(self) -> Verdict:
        """How it fared."""
        held = [] if self.is_dropped else [*self._columns.values(), *self._held]
        return Verdict(
            len(self._drift.misfits),
            self._drift.p_value,
            math.sqrt(self._drift.k2),
            self.is_dropped,
            tuple(Known(of.columns, len(of.shares), self._error(of)) for of in held),
        )

    def _error(self, of: Inherited) -> float:
        drift = self._columns_drift if len(of.columns) == 1 else self._drift
        return of.sampling + drift.scale * of.error + drift.beside(of.columns) * of.spread

    def _cell(self, of: Inherited) -> float:
        return self._rows**2 * self._error(of) / len(of.shares)

    def _inherited_of(
        self,
        known: Sequence[Known],
        within: Callable[[Clique, int], Clique | None] = lambda columns, _: columns,
    ) -> list[Inherited]:
        cliques = [(of, clique) for of in known if (clique := within(of.columns, of.cells)) is not None]
        tables = self._raked.shares([of.columns for of, _ in cliques])
        return [
            self._inherited(of, clique, table) for (of, clique), table in zip(cliques, tables, strict=True)
        ]

    def _inherited(self, known: Known, clique: Clique, table: Array) -> Inherited:
        """table: the shares at full resolution."""
        chains = self._chains
        full = table.reshape([chains.sizes[name] for name in known.columns])
        shares = chains.summed(full, known.columns, clique)
        axes = [
            shares.sum(axis=tuple(other for other in range(shares.ndim) if other != axis), keepdims=True)
            for axis in range(shares.ndim)
        ]
        drawn = (1 - float(np.square(shares).sum())) * (1 / self._prior.rows + 1 / self._rows)
        for name, column, part in zip(clique, known.columns, axes, strict=True):
            bins = np.array(chains.levels[name].bins) if name in chains.levels else np.arange(part.size)
            variance = self._variance.get(column, 0.0) * np.bincount(bins) / self._rows**2
            given = np.divide(shares, part, out=np.zeros_like(shares), where=part > 0)
            drawn += float((np.square(given) * variance.reshape(part.shape)).sum())
        rest = reduce(np.multiply, [np.square(1 - part) for part in axes])
        spread = float((np.square(shares) * rest).sum())
        told = float(np.abs(shares - reduce(np.multiply, axes)).sum())
        return Inherited(known.columns, clique, shares.reshape(-1), drawn, known.error, spread, told)

    def _misfit(self, measured: Sequence[Measured]) -> Misfit | None:
        """Of all measurements of a clique together. None of columns whose dependence the prior does not
        know."""
        m = measured[0]
        if len(m.columns) == 1:
            single = self._columns.get(m.columns)
            if single is None or m.levels:
                return None
            beside = single
        else:
            holding = [known for columns, known in self._known.items() if set(m.columns) <= set(columns)]
            if not holding:
                return None
            best = min(holding, key=lambda known: known.error)
            [table] = self._raked.shares([m.columns])
            beside = self._inherited(Known(m.columns, best.cells, best.error), m.clique, table)
        rows = self._rows
        shape = [self._chains.sizes[name] for name in m.clique]
        shares = beside.shares.reshape(shape)
        axes = [
            shares.sum(axis=tuple(a for a in range(shares.ndim) if a != axis)) for axis in range(shares.ndim)
        ]
        product = reduce(np.multiply.outer, axes)
        counts, variance = pooled(measured)
        values = counts.reshape(shape)
        return Misfit(
            frozenset(m.columns),
            len(m.values),
            variance,
            float(np.square(values - rows * shares).sum()),
            float(np.square(values - rows * product).sum()),
            rows**2 * beside.sampling,
            rows**2 * beside.error,
            rows**2 * beside.spread,
        )
