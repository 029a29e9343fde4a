"""Where a prior comes from: the model of an earlier release, or the rows of a public table.

Both answer one question: which shares would these sets of columns have, if the dependences were as they were
then and the single columns as they have just been measured? Raking answers it (`synth.mrf.raking`): of all
distributions with the given columns, the one nearest to the old one in relative entropy. A change of single
columns, however large, is no drift to it.

Errors are mean squared: `error` is the expected sum over the cells of the squared difference of two share
tables. It stays about the same when cells are joined, since independent errors add up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synth.mrf import Measurement, Model
from synth.mrf.raking import rake

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.synthesis import Measured

Array = NDArray[np.float64]
SWEEPS = 50
"""Of raking rows, at most; it ends when no column is off by more than `CLOSE` of the rows."""
CLOSE = 1e-6
MAX_ASKED_CELLS = 1 << 18
"""Of a set of columns at full resolution that a prior is asked about."""


@dataclass(frozen=True)
class Known:
    """A marginal that the prior tells. columns: in the prior's order. cells: its resolution. error: of its
    shares, from noise and drift so far; without that of drawing the rows."""

    columns: Clique
    cells: int
    error: float

    @classmethod
    def of(cls, columns: Any, cells: Any, error: Any) -> Known:
        """From what somebody else has written: raises ValueError or TypeError for what is no such marginal."""
        columns = tuple(columns)
        if not columns or len(set(columns)) < len(columns) or not all(isinstance(n, str) for n in columns):
            raise ValueError("An inherited marginal needs columns, each once.")
        if type(cells) is not int or not 1 < cells <= MAX_ASKED_CELLS:
            raise ValueError("An inherited marginal has a number of cells that is out of range.")
        if type(error) is not float or not 0 < error < math.inf:
            raise ValueError("The error of an inherited marginal must be a finite number above 0.")
        return cls(columns, cells, error)


class Prior(ABC):
    """names: of columns that it shares with the study, in the study's order. rows: it was made of."""

    names: tuple[str, ...]
    rows: float

    @abstractmethod
    def known(self, asked: Iterable[Clique]) -> Sequence[Known]:
        """What it tells of columns by themselves, and of several. asked: sets of columns that the run may ask
        for."""

    @abstractmethod
    def unchanged(self) -> Raked:
        """As it is."""

    @abstractmethod
    def raked(self, columns: Mapping[str, Array]) -> Raked:
        """With these single columns, in counts that are positive; those it does not have are not looked at."""


class Raked(ABC):
    """A prior brought to single columns."""

    @abstractmethod
    def shares(self, cliques: Sequence[Clique]) -> list[Array]:
        """The shares of sets of columns at full resolution, flat; each adds up to 1."""


def known_of(
    measurements: Iterable[Measured], rows: float, inherited: Iterable[Known] = ()
) -> tuple[Known, ...]:
    """What a release tells: what was measured, and what it had inherited; one of each set of columns.

    rows: by which counts become shares. Independent errors of the same columns combine by precision.
    """
    each = [
        Known(m.columns, len(m.values), len(m.values) * float(m.sigma2) / rows**2)
        for m in measurements
        if len(m.values) > 1 and m.rows is None
    ]
    found: dict[Clique, Known] = {}
    for one in (*each, *inherited):
        other = found.get(one.columns)
        if other is not None:
            error = 1 / (1 / one.error + 1 / other.error)
            one = Known(one.columns, max(one.cells, other.cells), error)
        found[one.columns] = one
    return tuple(found.values())


@dataclass(frozen=True, eq=False)
class Release(Prior):
    """An earlier release. model: fitted then. marginals: `known_of` it."""

    names: tuple[str, ...]
    model: Model
    marginals: tuple[Known, ...]

    @property
    def rows(self) -> float:  # type: ignore[override]
        return self.model.total

    def known(self, asked: Iterable[Clique]) -> list[Known]:
        mine = set(self.names)
        sizes = self.model.sizes
        return [
            of
            for of in self.marginals
            if mine.issuperset(of.columns)
            and np.prod([sizes[n] for n in of.columns], dtype=float) <= MAX_ASKED_CELLS
        ]

    def unchanged(self) -> Raked:
        return _RakedModel(self.model)

    def raked(self, columns: Mapping[str, Array]) -> Raked:
        wanted = [Measurement((name,), columns[name], 1.0) for name in self.names]
        return _RakedModel(rake(self.model, wanted, self.model.impossible))


@dataclass(frozen=True, eq=False)
class _RakedModel(Raked):
    model: Model

    def shares(self, cliques: Sequence[Clique]) -> list[Array]:
        return [of / self.model.total for of in self.model.marginals(cliques)]


@dataclass(frozen=True, eq=False)
class PublicTable(Prior):
    """Public rows. codes: (rows, names), of the study's columns; every code is in the domain. sizes: of these
    columns."""

    names: tuple[str, ...]
    codes: NDArray[np.integer]
    sizes: Mapping[str, int]

    @property
    def rows(self) -> float:  # type: ignore[override]
        return float(len(self.codes))

    def known(self, asked: Iterable[Clique]) -> list[Known]:
        mine = set(self.names)
        sets = {
            clique: np.prod([self.sizes[n] for n in clique], dtype=float)
            for clique in dict.fromkeys([*((name,) for name in self.names), *asked])
            if mine.issuperset(clique)
        }
        return [Known(c, int(cells), 0.0) for c, cells in sets.items() if 1 < cells <= MAX_ASKED_CELLS]

    def unchanged(self) -> Raked:
        return _RakedRows(self, np.full(len(self.codes), 1.0 / len(self.codes)))

    def raked(self, columns: Mapping[str, Array]) -> Raked:
        weights = np.full(len(self.codes), 1.0 / len(self.codes))
        for _ in range(SWEEPS):
            furthest = 0.0
            for axis, name in enumerate(self.names):
                wanted = columns[name] / columns[name].sum()
                now = np.bincount(self.codes[:, axis], weights, self.sizes[name])
                there = now > 0
                wanted = np.where(there, wanted, 0.0) / wanted[there].sum()
                furthest = max(furthest, float(np.abs(wanted - now).max()))
                weights *= np.divide(wanted, now, out=np.zeros_like(now), where=there)[self.codes[:, axis]]
            if furthest < CLOSE:
                break
        return _RakedRows(self, weights / weights.sum())


@dataclass(frozen=True, eq=False)
class _RakedRows(Raked):
    table: PublicTable
    weights: Array

    def shares(self, cliques: Sequence[Clique]) -> list[Array]:
        place = {name: axis for axis, name in enumerate(self.table.names)}
        found = []
        for clique in cliques:
            shape = tuple(self.table.sizes[name] for name in clique)
            cells = np.ravel_multi_index(tuple(self.table.codes[:, place[n]] for n in clique), shape)
            found.append(np.bincount(cells, self.weights, int(np.prod(shape))).astype(np.float64))
        return found
