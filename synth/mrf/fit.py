"""Fit of the graphical model to noisy marginals: mirror descent on the potentials.

Problem: among distributions with `total` rows, find the one that minimises

    sum_i || mu_i - y_i ||^2 / (2 variance_i)

over the measured marginals y_i, and of all of those the one of maximum entropy (Private-PGM, McKenna et al. 2019; papers/notes.md
section 4). The weight is the inverse variance: notes.md explains why 1/sigma, as printed by AIM and FLAIM, is wrong.
Everything here is post-processing of released values: it costs no privacy and its floats leak nothing. The total is
estimated from the measurements or given as a noisy value; the true row count must never be passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth.mrf.factor import Array, Factor
from synth.mrf.junction_tree import Clique, junction_tree
from synth.mrf.model import Model
from synth.mrf.propagation import Propagation

GROW, SHRINK = 1.2, 0.5

Callback = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal: `values` (flat, row-major over `clique`, any finite numbers) with noise of the given variance per cell."""

    clique: Clique
    values: Array
    variance: float

    def __post_init__(self) -> None:
        values = np.ascontiguousarray(self.values, dtype=np.float64).reshape(-1)
        if len(set(self.clique)) != len(self.clique):
            raise ValueError(f"the clique ({', '.join(self.clique)}) names a column twice")
        if not np.isfinite(values).all():
            raise ValueError(f"the measurement of ({', '.join(self.clique)}) holds a value that is not finite")
        if not (np.isfinite(self.variance) and self.variance > 0):
            raise ValueError(f"the variance of ({', '.join(self.clique)}) must be positive and finite, got {self.variance}")
        object.__setattr__(self, "clique", tuple(self.clique))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "variance", float(self.variance))


@dataclass(frozen=True)
class _Target:
    """All measurements of one set of columns as one: axes in the domain's order, columns with a single value left out."""

    clique: Clique
    values: Array
    variance: float


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """Number of rows by the inverse-variance mean of the measurements' sums, at least 1 (1 if nothing was measured)."""
    weights = [1.0 / (m.variance * m.values.size) for m in measurements]
    if not weights:
        return 1.0
    sums = [float(m.values.sum()) for m in measurements]
    return max(1.0, float(np.dot(weights, sums) / np.sum(weights)))


def _targets(sizes: Mapping[str, int], measurements: Sequence[Measurement]) -> tuple[list[_Target], float]:
    """Measurements merged by set of columns (inverse-variance mean), and the constant by which that lowers the loss."""
    position = {name: index for index, name in enumerate(sizes)}
    grouped: dict[Clique, list[tuple[Array, float]]] = {}
    for m in measurements:
        missing = [name for name in m.clique if name not in position]
        if missing:
            raise ValueError(f"the measurement of ({', '.join(m.clique)}) names column {missing[0]!r}, which is not in the domain")
        shape = tuple(sizes[name] for name in m.clique)
        if m.values.size != int(np.prod(shape)):
            raise ValueError(f"({', '.join(m.clique)}) has {int(np.prod(shape))} cells, its measurement {m.values.size}")
        order = sorted(range(len(shape)), key=lambda axis: position[m.clique[axis]])
        clique = tuple(m.clique[axis] for axis in order if shape[axis] > 1)
        grouped.setdefault(clique, []).append((m.values.reshape(shape).transpose(order).reshape(-1), m.variance))
    targets, constant = [], 0.0
    for clique in sorted(grouped, key=lambda c: [position[name] for name in c]):
        parts = sorted(grouped[clique], key=lambda part: (part[1], part[0].tobytes()))
        precision = sum(1.0 / variance for _, variance in parts)
        mean = sum((values / variance for values, variance in parts), np.zeros_like(parts[0][0])) / precision
        constant += sum(float(np.square(values - mean).sum()) / (2 * variance) for values, variance in parts)
        targets.append(_Target(clique, mean, 1.0 / precision))
    return targets, constant


def fit(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    warm_start: Model | None = None,
    iterations: int = 1000,
    callback: Callback | None = None,
) -> Model:
    """The maximum-entropy model of `measurements` over the columns `sizes` (in domain order), after at most `iterations` steps."""
    sizes = dict(sizes)
    targets, constant = _targets(sizes, measurements)
    total = max(1.0, float(total)) if total is not None else estimate_total(measurements)
    # A measurement of the total alone (no column, or columns with a single value) is a constant of the fit.
    constant += sum(float(np.square(total - t.values).sum()) / (2 * t.variance) for t in targets if not t.clique)
    targets = [target for target in targets if target.clique]
    cliques = [target.clique for target in targets]
    tree = junction_tree(sizes, cliques)
    known = warm_start.potentials if warm_start is not None else {}
    potentials = {clique: known[clique] for clique in cliques if clique in known}
    work = Propagation(tree, sizes, cliques)
    work.start([Factor(c, v.reshape([sizes[n] for n in c])) for c, v in potentials.items()])

    goal, weight = np.empty_like(work.marginals), np.empty_like(work.marginals)
    theta = np.zeros_like(work.marginals)
    for k, target in enumerate(targets):
        part = slice(work.offsets[k], work.offsets[k + 1])
        factor = Factor(target.clique, target.values.reshape([sizes[n] for n in target.clique])).project(work.layouts[k])
        goal[part] = factor.values.reshape(-1)
        weight[part] = 1.0 / target.variance
        if target.clique in potentials:
            shaped = Factor(target.clique, potentials[target.clique].reshape([sizes[n] for n in target.clique]))
            theta[part] = shaped.project(work.layouts[k]).values.reshape(-1)

    gradient, step = np.zeros_like(theta), np.zeros_like(theta)

    def loss() -> float:
        np.subtract(work.marginals, goal, out=step)
        np.multiply(step, weight, out=gradient)
        return float(np.dot(step, gradient)) / 2

    work.evaluate(step, total)
    work.accept()
    current = loss()
    direction = gradient.copy()
    rate = 1.0 / (total * max(float(weight.max(initial=0.0)), 1e-300)) if theta.size else 0.0
    if callback is not None:
        callback(0, current + constant)
    for iteration in range(1, iterations + 1):
        np.multiply(direction, -rate, out=step)
        np.clip(step, -work.bound, work.bound, out=step)
        trial_step = step.copy()
        work.evaluate(step, total)
        now = loss()
        if now <= current:
            work.accept()
            theta += trial_step
            current = now
            direction, gradient = gradient, direction
            rate *= GROW
        else:
            rate *= SHRINK
        if callback is not None:
            callback(iteration, current + constant)
    final = {}
    for k, view in enumerate(work.views(theta)):
        final[cliques[k]] = Factor(work.layouts[k], view).project(cliques[k]).values.reshape(-1).copy()
    return Model(sizes, total, final)
