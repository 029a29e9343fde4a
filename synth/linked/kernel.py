"""The model by which a person's next child is drawn: the released one, with the child before tied to its
person as well (`docs/design/linked.md` 4).

Problem: the workload measures how A is tied to the person, and A to B, not B to the person. In the released
model B therefore knows its person through A alone. Drawing the next child from that model, given a child that
already bears its person's mark, counts the person twice (and likewise a child's own columns among each
other): likeness within a person grows from child to child.

Method: each clique of A's columns, with the person's or among each other, is stated of B as well: the same
association, fitted to B's own margins (iterative proportional fitting), in the cells where B is there. A
model that has the released one's marginals and these is fitted, as any is. Released values only: no budget.

Cost: a fit. Cliques that would make the model's junction tree larger than `MAX_MB` are left out, those with
the person's columns last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from mpc_protocols.functionality import Clique
from synth.linked.tables import ChildTable
from synth.mrf import Model
from synth.mrf.factor import Array
from synth.mrf.fit import Measurement, fit
from synth.mrf.levels import Chains
from synth.mrf.tree_size import SizeEstimator

MAX_MB = 8.0
ITERATIONS, TOLERANCE = 200, 0.01
SWEEPS = 30
"""Of proportional fitting; it converges linearly, and the fit that follows is no more exact."""
MIN_ROWS = 1e-9
"""Rows of an empty cell of the association, so that margins can be met."""


def kernel(model: Model, owner: Collection[str], child: ChildTable) -> Model:
    """The model of the next child: its law of A given B and the person is that of the next child given the
    one before. owner: the columns of whose it is: of people, and for what belongs to a child those of the
    child.

    Where no column of the table orders it, A and B have one law: the table of all that A is tied to,
    reweighted from one child a person to one pair of children, states B as well as A, and what was measured
    of A with B is fitted to its margins.
    """
    own = {*owner, *child.unfolded}
    of = {name: model.used_levels[name].column for name in model.used_levels}
    second = {child.second(name) for name in child.domain.names}
    kept = [clique for clique in model.cliques if all(of.get(name, name) in own for name in clique)]
    chains = Chains.used(model.sizes, model.used_levels, model.cliques)
    stationary = child.ordered_by is None
    reweighted = _Reweighted(model, child, chains) if stationary else None
    stated = [
        Measurement(clique, model.marginal(clique) if reweighted is None else reweighted(clique), 1.0)
        for clique in kept
        if not (stationary and len(clique) == 1 and of.get(clique[0], clique[0]) in second)
    ]
    limit = max(MAX_MB, 1.5 * SizeEstimator(chains.sizes, [*kept, *model.impossible], chains.coarser).mb)
    chosen: list[Clique] = []
    for source, tied in _ties(kept, of, child):
        if SizeEstimator(chains.sizes, [*kept, *chosen, tied, *model.impossible], chains.coarser).mb > limit:
            continue
        chosen.append(tied)
        shape = [chains.sizes[name] for name in tied]
        if reweighted is not None:
            values = reweighted(source)
        else:
            values = _of_second(
                model.marginal(source).reshape(shape),
                model.marginal(tied).reshape(shape),
                [name in second for name in tied],
            ).reshape(-1)
        stated.append(Measurement(tied, values, 1.0))
    if not chosen:
        return model
    return fit(
        model.sizes,
        stated,
        total=model.total if reweighted is None else reweighted.total,
        warm_start=model,
        levels=model.used_levels,
        impossible=model.impossible,
        iterations=ITERATIONS,
        tolerance=TOLERANCE,
    )


class _Reweighted:
    """Marginals over pairs of neighbouring children, if both have the law of a child of their person.

    A person with n children has one child drawn in the model and n - 1 pairs in n draws, so its rows count (n
    - 1) / n. total: rows.
    """

    def __init__(self, model: Model, child: ChildTable, chains: Chains) -> None:
        self._model, self._chains, self._count = model, chains, child.count
        self._second = {child.second(name): child.first(name) for name in child.domain.names}
        column = child.unfolded[child.count]
        numbers = np.array([sum(column.span(code)) / 2 for code in range(column.size)])
        self._weights = np.maximum(numbers - 1, 0) / np.maximum(numbers, 1)
        self.total = max(1.0, float(self._weights @ model.marginal((child.count,))))

    def __call__(self, clique: Clique) -> Array:
        """The marginal of a clique, flat."""
        columns = [self._chains.column[name] for name in clique]
        if any(column in self._second for column in columns):
            return self._pair(clique)
        return self._of_first(clique)

    def _of_first(self, clique: Clique) -> Array:
        """Of columns other than B's."""
        axes = [name for name in clique if self._chains.column[name] != self._count]
        whole = (
            self._model.marginal((self._count, *axes)).reshape(len(self._weights), -1)
            * self._weights[:, None]
        )
        if len(axes) == len(clique):
            total: Array = whole.sum(axis=0)
            return total
        at = next(name for name in clique if name not in axes)
        shape = [self._chains.sizes[name] for name in axes]
        if at != self._count:
            bins = self._chains.bins(self._count, at)
            whole = np.stack([whole[bins == one].sum(axis=0) for one in range(self._chains.sizes[at])])
        place = clique.index(at)
        arranged: Array = np.moveaxis(whole.reshape(-1, *shape), 0, place).reshape(-1)
        return arranged

    def _pair(self, clique: Clique) -> Array:
        """Of A's columns with B's: what was measured, at the margins that both would have."""
        shape = [self._chains.sizes[name] for name in clique]
        values = np.maximum(self._model.marginal(clique).reshape(shape), MIN_ROWS)
        goals = [self._margin(name) for name in clique]
        for _ in range(SWEEPS):
            for axis, goal in enumerate(goals):
                rest = tuple(other for other in range(values.ndim) if other != axis)
                values = values * _along(
                    goal / np.maximum(values.sum(axis=rest), MIN_ROWS), axis, values.ndim
                )
        return values.reshape(-1)

    def _margin(self, name: str) -> Array:
        """A column's own, of B's columns that of A's, over the bins of a level."""
        column = self._chains.column[name]
        margin = self._of_first((self._second.get(column, column),))
        if name == column:
            return margin
        binned: Array = np.zeros(self._chains.sizes[name])
        np.add.at(binned, self._chains.bins(column, name), margin)
        return binned


def _ties(cliques: list[Clique], of: Mapping[str, str], child: ChildTable) -> list[tuple[Clique, Clique]]:
    """Cliques of A's columns (at full resolution) and the same of B's, those with the person's columns first."""
    second = {child.first(name): child.second(name) for name in child.domain.names}
    others = set(second.values())
    found: dict[tuple[Clique, Clique], bool] = {}
    for clique in cliques:
        columns = [of.get(name, name) for name in clique]
        if len(clique) < 2 or others & set(columns) or not second.keys() & set(columns):
            continue
        source = tuple(
            column if column in second else name for name, column in zip(clique, columns, strict=True)
        )
        found[source, tuple(second.get(name, name) for name in source)] = all(
            column in second for column in columns
        )
    return sorted(found, key=lambda pair: found[pair])


def _of_second(first: Array, current: Array, of_child: list[bool]) -> Array:
    """A marginal with B in A's place: A's association at the margins of B, where B is there; elsewhere as it
    is.

    first, current: marginals with A and with B. of_child: of each axis, whether it is a column of the child,
    whose last code is that of no child.
    """
    there = np.ones(first.shape, dtype=bool)
    for axis, own in enumerate(of_child):
        if own:
            there &= _along(np.arange(first.shape[axis]) < first.shape[axis] - 1, axis, first.ndim)
    values = np.where(there, np.maximum(first, MIN_ROWS), 0.0)
    goal = np.where(there, current, 0.0)
    for _ in range(SWEEPS):
        for axis in range(first.ndim):
            rest = tuple(other for other in range(first.ndim) if other != axis)
            ratio = goal.sum(axis=rest) / np.maximum(values.sum(axis=rest), MIN_ROWS)
            values = values * _along(ratio, axis, first.ndim)
    return np.where(there, values, current)


def _along(values: Array, axis: int, axes: int) -> Array:
    return values.reshape([-1 if other == axis else 1 for other in range(axes)])
