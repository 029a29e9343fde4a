"""The model by which a person's next child is drawn: the released one, with the child before tied to its person as well
(`docs/design/linked.md` 4).

Problem: the workload measures how A is tied to the person, and A to B, not B to the person. In the released model B therefore knows
its person through A alone. Drawing the next child from that model, given a child that already bears its person's mark, counts the
person twice (and likewise a child's own columns among each other): likeness within a person grows from child to child.

Method: each clique of A's columns, with the person's or among each other, is stated of B as well: the same association, fitted to
B's own margins (iterative proportional fitting), in the cells where B is there. A model that has the released one's marginals and
these is fitted, as any is. Released values only: no budget.

Cost: a fit. Cliques that would make the model's junction tree larger than `MAX_MB` are left out, those with the person's columns
last.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mpc_protocols.functionality import Clique
from synth.linked.tables import ChildTable, LinkedTables
from synth.mrf import Model
from synth.mrf.factor import Array
from synth.mrf.fit import Measurement, fit
from synth.mrf.levels import Chains
from synth.mrf.tree_size import SizeEstimator

MAX_MB = 8.0
ITERATIONS, TOLERANCE = 200, 0.01
SWEEPS = 30
"""Of proportional fitting; it converges linearly, and the fit that follows is no more exact."""
SMALLEST = 1e-9
"""Rows of an empty cell of the association, so that margins can be met."""


def kernel(model: Model, linked: LinkedTables, child: ChildTable) -> Model:
    """The model of the next child: its law of A given B and the person is that of the next child given the one before."""
    own = {*linked.people.names, *child.unfolded}
    of = {name: model.used_levels[name].column for name in model.used_levels}
    kept = [clique for clique in model.cliques if all(of.get(name, name) in own for name in clique)]
    chains = Chains.used(model.sizes, model.used_levels, model.cliques)
    estimator = SizeEstimator(chains.sizes, [*kept, *model.impossible], chains.coarser)
    stated = [Measurement(clique, model.marginal(clique), 1.0) for clique in kept]
    limit = max(MAX_MB, 1.5 * estimator.mb)
    chosen: list[Clique] = []
    for source, tied in _ties(kept, of, linked, child):
        if SizeEstimator(chains.sizes, [*kept, *chosen, tied, *model.impossible], chains.coarser).mb > limit:
            continue
        chosen.append(tied)
        shape = [chains.sizes[name] for name in tied]
        absent = {child.second(name) for name in child.domain.names}
        values = _of_second(
            model.marginal(source).reshape(shape),
            model.marginal(tied).reshape(shape),
            [name in absent for name in tied],
        )
        stated.append(Measurement(tied, values.reshape(-1), 1.0))
    if not chosen:
        return model
    return fit(
        model.sizes,
        stated,
        total=model.total,
        warm_start=model,
        levels=model.used_levels,
        impossible=model.impossible,
        iterations=ITERATIONS,
        tolerance=TOLERANCE,
    )


def _ties(
    cliques: list[Clique], of: Mapping[str, str], linked: LinkedTables, child: ChildTable
) -> list[tuple[Clique, Clique]]:
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
    """A marginal with B in A's place: A's association at the margins of B, where B is there; elsewhere as it is.

    first, current: marginals with A and with B. of_child: of each axis, whether it is a column of the child, whose last code is
    that of no child.
    """
    there = np.ones(first.shape, dtype=bool)
    for axis, own in enumerate(of_child):
        if own:
            there &= _along(np.arange(first.shape[axis]) < first.shape[axis] - 1, axis, first.ndim)
    values = np.where(there, np.maximum(first, SMALLEST), 0.0)
    goal = np.where(there, current, 0.0)
    for _ in range(SWEEPS):
        for axis in range(first.ndim):
            rest = tuple(other for other in range(first.ndim) if other != axis)
            ratio = goal.sum(axis=rest) / np.maximum(values.sum(axis=rest), SMALLEST)
            values = values * _along(ratio, axis, first.ndim)
    return np.where(there, values, current)


def _along(values: Array, axis: int, axes: int) -> Array:
    return values.reshape([-1 if other == axis else 1 for other in range(axes)])
