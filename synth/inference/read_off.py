"""The least-squares estimate of a moment, straight from the released marginals.

Problem: y_i = B_i x + z_i are noisy sums of the table x of all rows, z_i independent with variance sigma_i^2
a cell. Of some columns S, let x_S be their marginal at the resolution of a released marginal that holds them.
Every y_i, summed down to the columns that it shares with S, is a linear function C_i x_S with noise of known
variance V_i (a sum of n cells has n sigma_i^2). The generalised least-squares estimate of x_S and of a moment
g . x_S are

    M = sum_i C_i' V_i^-1 C_i,      x^_S = M^-1 sum_i C_i' V_i^-1 y_i,
    T = g . x^_S = sum_i J_i . y_i,       J_i = V_i^-1 C_i M^-1 g      (spread evenly over the cells that were summed)

It is unbiased whatever the model's structure, and its variance by the noise is sum_i sigma_i^2 |J_i|^2,
exactly, also of sums of several moments that read the same marginals (`docs/design/inference.md` 2 and 3:
without bins it is the estimate to which the fit of the model converges, and no linear unbiased estimate has
less variance).

M is a sum of averages along axes; conjugate gradients end after as many steps as it has different
eigenvalues, at most 2^|S| without bins. Of few cells it is inverted once instead, for many moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Level
from synth.inference.licence import NotMeasured
from synth.inference.moments import Moment
from synth.mrf import Chains
from synth.synthesis import Measured

Array = NDArray[np.float64]
Clique = tuple[str, ...]
Parts = list[tuple[Clique, Array]]
"""A function of rows as a sum: columns or levels, and a table of what a row in each of their cells contributes."""
MAX_STEPS, PRECISION = 500, 1e-13
MAX_INVERTED, MAX_CONDITION = 128, 1e8
"""Cells of a table whose M is inverted, and its condition: a refinement leaves less than 1e-13 then."""
LOOSE = 2.0
"""Deviations of the noise."""
MAX_KEPT, MAX_KEPT_CELLS = 1 << 10, 1 << 12
"""Moments whose resolution is remembered, and their cells: 130 MB at most."""


@dataclass(frozen=True, eq=False)
class Coarse:
    """A moment at the resolution of a marginal. values: of its cells, what a row there contributes,
    within-bin shares as the columns' own counts have them. The other four: by how much all rows together
    could contribute less or more, where a bin joins codes (coded) or codes join values (valued), by the estimates of
    what `ReadOff.enclosing` says."""

    names: Clique
    values: Array
    coded: tuple[float, float]
    valued: tuple[float, float]


class Estimate:
    """x^_S of some columns at some resolution. names: columns or levels."""

    def __init__(self, names: Clique, chains: Chains, measured: Sequence[Measured]) -> None:
        self.names, self._chains, self._measured = names, chains, measured
        column = chains.column
        at = {column[name]: name for name in names}
        self._targets: list[Clique] = []
        self._precisions: list[Array] = []
        shape = [chains.sizes[name] for name in names]
        total: dict[Clique, Array] = {}
        right = np.zeros(shape)
        for m in measured:
            own = {column[name]: name for name in m.clique}
            target = tuple(chains.coarser_of(own[c], name) for c, name in at.items() if c in own)
            values = m.values.astype(np.float64).reshape([chains.sizes[name] for name in m.clique])
            cells = chains.summed(np.ones_like(values), m.clique, target)
            precision = 1.0 / (cells * float(m.sigma2))
            self._targets.append(target)
            self._precisions.append(precision)
            total[target] = total.get(target, 0.0) + precision
            right = right + chains.lifted(precision * chains.summed(values, m.clique, target), target, names)
        self._total = total
        self._inverse = self._inverted() if right.size <= MAX_INVERTED else None
        self.values = self.solved(right)

    @property
    def deviation(self) -> float:
        """At most, of the noise of a cell."""
        precision = self._total[self.names]
        return float(1 / np.sqrt(np.min(precision)))

    def _applied(self, values: Array) -> Array:
        """M times a table."""
        product = np.zeros_like(values)
        for target, precision in self._total.items():
            product = product + self._chains.lifted(
                precision * self._chains.summed(values, self.names, target), target, self.names
            )
        return product

    def _inverted(self) -> Array | None:
        """M^-1, of rows and columns in the cells' order; None if it is badly conditioned."""
        cells = prod(self._chains.sizes[name] for name in self.names)
        matrix = np.zeros((cells, cells))
        for target, precision in self._total.items():
            cell = self._chains.cells_of(target, self.names)
            matrix += (cell[:, None] == cell) * precision.reshape(-1)[cell]
        if np.trace(matrix) > MAX_CONDITION * np.min(self._total[self.names]):  # no less than its condition
            return None
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def solved(self, right: Array) -> Array:
        """M^-1 times a table: by its inverse, refined once, or by conjugate gradients."""
        if self._inverse is not None:
            found = (self._inverse @ right.reshape(-1)).reshape(right.shape)
            return found + (self._inverse @ (right - self._applied(found)).reshape(-1)).reshape(right.shape)
        found, rest = np.zeros_like(right), right.copy()
        step, size = rest.copy(), float((rest * rest).sum())
        goal = PRECISION**2 * size
        for _ in range(MAX_STEPS):
            if size <= goal or size == 0:
                break
            image = self._applied(step)
            rate = size / float((step * image).sum())
            found += rate * step
            rest -= rate * image
            size, before = float((rest * rest).sum()), size
            step = rest + size / before * step
        return found

    def weights(self, moment: Array) -> list[Array]:
        """J_i of a moment g, flat, one array a measurement in its own cells' order."""
        solved = self.solved(moment)
        found = []
        for m, target, precision in zip(self._measured, self._targets, self._precisions, strict=True):
            weight = precision * self._chains.summed(solved, self.names, target)
            shape = [self._chains.sizes[name] for name in m.clique]
            lifted = self._chains.lifted(weight, target, m.clique)
            found.append(np.broadcast_to(lifted, shape).reshape(-1))
        return found


class ReadOff:
    """Estimates of any moments that a run's marginals hold."""

    def __init__(
        self, sizes: Mapping[str, int], measured: Sequence[Measured], column_counts: Mapping[str, Array]
    ) -> None:
        """column_counts: about how many rows have each code of each column, for the shares within a bin."""
        levels: dict[str, Level] = {level.name: level for m in measured for level in m.levels}
        self.measured = tuple(measured)
        self._chains = Chains(sizes, levels)
        self._counts = column_counts
        self._estimates: dict[Clique, Estimate] = {}
        self._coarse: dict[int, tuple[Moment, Coarse]] = {}

    def resolutions(self, columns: Sequence[str]) -> list[Clique]:
        """At which columns or levels released marginals hold these columns together, in their order."""
        found: dict[Clique, None] = {}
        for m in self.measured:
            own = {self._chains.column[name]: name for name in m.clique}
            if set(columns) <= own.keys():
                found[tuple(own[c] for c in columns)] = None
        return list(found)

    def cells_of(self, names: Clique, columns: Clique) -> NDArray[np.intp]:
        """For each cell of a table of columns (flat), the cell of `names`, some of these or their levels, that
        it lies in."""
        return self._chains.cells_of(names, columns)

    def estimate(self, names: Clique) -> Estimate:
        """Of the marginal of these columns or levels."""
        if names not in self._estimates:
            self._estimates[names] = Estimate(names, self._chains, self.measured)
        return self._estimates[names]

    def coarse(self, moment: Moment) -> Coarse:
        """The moment at the resolution that leaves the least open, then at the finest. Raises `NotMeasured`."""
        known = self._coarse.get(id(moment))
        if known is not None:
            return known[1]
        options = self.resolutions(moment.columns)
        if not options:
            raise NotMeasured(moment.columns)
        found = min(
            (self._at(moment, names) for names in options),
            key=lambda c: (sum(c.coded), sum(c.valued), -c.values.size, c.names),
        )
        if len(self._coarse) >= MAX_KEPT:
            self._coarse.clear()
        if moment.centre.size <= MAX_KEPT_CELLS:
            self._coarse[id(moment)] = (
                moment,
                found,
            )  # which keeps the moment, so that no other one gets its id
        return found

    def _at(self, moment: Moment, names: Clique) -> Coarse:
        columns, estimate = moment.columns, self.estimate(names).values
        if names == columns:
            below = float((estimate * (moment.centre - moment.least)).sum())
            above = float((estimate * (moment.most - moment.centre)).sum())
            return Coarse(names, moment.centre, (0.0, 0.0), (max(0.0, below), max(0.0, above)))
        rows = self._rows(columns)
        whole = self._chains.summed(rows, columns, names)
        values = self._chains.summed(rows * moment.centre, columns, names) / whole
        middle = float((estimate * values).sum())

        def room(least: Array, most: Array) -> tuple[float, float]:
            below, above = self._dominating(-least, names, columns), self._dominating(most, names, columns)
            if np.array_equal(self._lifted(above, columns), -self._lifted(below, columns)):
                return 0.0, 0.0
            return max(0.0, middle + self._sum(below)), max(0.0, self._sum(above) - middle)

        coded = room(moment.centre, moment.centre)
        is_exact = np.array_equal(moment.least, moment.centre) and np.array_equal(moment.most, moment.centre)
        return Coarse(names, values, coded, coded if is_exact else room(moment.least, moment.most))

    def enclosing(self, moment: Moment, names: Clique, *, valued: bool) -> tuple[list[Moment], list[Moment]]:
        """Moments that are measured: of no row the sum of the first ones is above what the row contributes, whatever its
        place in bins that join codes, nor the sum of the others below. valued: nor whatever its place in its code's own
        bin. names: of its `Coarse`."""
        columns = moment.columns
        least, most = (moment.least, moment.most) if valued else (moment.centre, moment.centre)
        if names == columns:
            return [Moment.table(columns, least)], [Moment.table(columns, most)]
        below, above = self._dominating(-least, names, columns), self._dominating(most, names, columns)
        return (
            [Moment.table(*self._fine(part, of, columns, -1.0)) for part, of in below],
            [Moment.table(*self._fine(part, of, columns, 1.0)) for part, of in above],
        )

    def _fine(self, names: Clique, values: Array, columns: Clique, sign: float) -> tuple[Clique, Array]:
        """A function of levels as one of codes, times a sign."""
        of = tuple(self._chains.column[name] for name in names)
        shape = [self._chains.sizes[name] for name in of]
        return of, sign * np.broadcast_to(self._chains.lifted(values, names, of), shape)

    def _lifted(self, parts: Parts, columns: Clique) -> Array:
        total = np.zeros([self._chains.sizes[name] for name in columns])
        for names, values in parts:
            total = total + self._chains.lifted(values, names, columns)
        return total

    def _sum(self, parts: Parts) -> float:
        return sum(float((self.estimate(names).values * values).sum()) for names, values in parts)

    def _rows(self, columns: Clique) -> Array:
        """A table in the proportions of each column's own counts."""
        rows = np.ones(())
        for name in columns:
            rows = rows[..., None] * np.maximum(self._counts[name], 1e-9)
        return rows

    def _dominating(self, table: Array, names: Clique, columns: Clique) -> Parts:
        """A function of the cells of `names`, and where these join codes of one column that was measured by itself, one of its
        codes: their sum is nowhere below a function of the columns' codes.

        Any such pair will do; this one has about the least sum over all rows (the dual of filling each cell with the
        largest values first, until a code's rows are used up), each count taken as so many deviations of its noise more
        as an interval adds: of two that could bound, the one with more noise bounds less.
        """
        chains = self._chains
        joined = [
            axis for axis, (name, column) in enumerate(zip(names, columns, strict=True)) if name != column
        ]
        column = columns[joined[0]]
        if len(joined) > 1 or (column,) not in self.resolutions((column,)):
            cells = chains.cells_of(names, columns)
            return [(names, -_least(-table, cells, tuple(chains.sizes[name] for name in names)))]
        [axis] = joined
        own, bins = names[axis], chains.bins(column, names[axis])
        alone, together = self.estimate((column,)), self.estimate(names)
        caps = np.maximum(alone.values, 0.0) + LOOSE * alone.deviation
        rows = np.maximum(together.values, 0.0) + LOOSE * together.deviation
        table, rows = (np.moveaxis(of, axis, 0).reshape(of.shape[axis], -1) for of in (table, rows))
        of_codes = np.zeros(len(caps))
        for number, some in enumerate(rows):
            codes = np.flatnonzero(bins == number)
            order = np.argsort(-table[codes], axis=0, kind="stable")
            full = np.cumsum(caps[codes][order], axis=0) >= some
            last = np.where(full.any(0), full.argmax(0), len(codes) - 1)
            level = np.take_along_axis(table[codes], np.take_along_axis(order, last[None], 0), 0)
            of_codes[codes] = np.maximum(table[codes] - level, 0.0).max(1)
        rest = table - of_codes[:, None]
        of_cells = np.stack([rest[bins == number].max(0) for number in range(len(rows))])
        others = [chains.sizes[name] for name in names if name != own]
        found: Parts = [(names, np.moveaxis(of_cells.reshape(len(rows), *others), 0, axis))]
        return [*found, ((column,), of_codes)] if of_codes.any() else found

    def table(self, columns: Clique) -> Array:
        """The estimated counts of columns by their codes; within a bin, in the proportions of each column's
        own counts.

        Raises `NotMeasured`."""
        names = self.coarse(Moment.table(columns, np.ones([self._chains.sizes[n] for n in columns]))).names
        values = self.estimate(names).values
        if names == columns:
            return values
        rows = self._rows(columns)
        whole = self._chains.summed(rows, columns, names)
        return rows * self._chains.lifted(values / whole, names, columns)


def _least(table: Array, cells: NDArray[np.intp], shape: tuple[int, ...]) -> Array:
    found = np.full(prod(shape), np.inf)
    np.minimum.at(found, cells, table.reshape(-1))
    return found.reshape(shape)
