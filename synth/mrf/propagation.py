"""Belief propagation on a junction tree: the loop of the fit, in arrays that are allocated once.

Problem: the fit needs, hundreds of times, the marginals of the measured cliques after a change of their potentials.
Private-PGM (McKenna et al. 2019; papers/notes.md section 4) recalibrates from the potentials in log space every time. Here
the calibrated tree is itself the state: a step multiplies every clique's belief and sends the messages that make the tree
agree again,

    leaves first:  trial(C) = belief(C) / belief(S) * prod exp(step of the measured cliques in C) * prod messages of C's children
                   message(S) = sum of trial(C) down to the separator S
    root first:    new belief(C) = trial(C) * new belief(S) / message(S)

belief(C) / belief(S) is a conditional distribution, so a message lies between the smallest and the largest product of the
step's factors: nothing overflows or vanishes however long the fit runs, as long as one step is bounded
(`Propagation.bound`), and no logarithm or exponential is ever taken over a whole clique, only over the measured ones. A
slice with less than `EMPTY` rows is treated as if it had that many, which only makes it smaller still (the final model is
rebuilt from the potentials, in log space, where nothing is lost). `schedule.py` decides how a clique's factors and marginals
share passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from synth.mrf.factor import Array, Factor, aligned
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.schedule import Product, Scope, Sum, merge, subscripts

LOG_RANGE = (
    200.0  # all factors of one step together stay within exp(+-LOG_RANGE); float64 ends near exp(+-700)
)
EMPTY = 1e-150  # rows; 1 / EMPTY times a step's factors still fits a float64
TINY = 1e-300  # keeps 0 / 0 at 0 and changes no message that is not 0


def home(tree: JunctionTree, sizes: Mapping[str, int], clique: Clique) -> int:
    """Index of the smallest node that contains `clique`; ValueError if none does."""
    wanted = set(clique)
    fitting = [index for index, node in enumerate(tree.nodes) if wanted <= set(node)]
    if not fitting:
        raise ValueError(f"no clique of the model contains ({', '.join(clique)})")
    return min(fitting, key=lambda index: (prod(sizes[name] for name in tree.nodes[index]), index))


def log_conditionals(
    tree: JunctionTree, sizes: Mapping[str, int], potentials: Sequence[Factor]
) -> list[Factor]:
    """Log conditional of each node given its separator, for the distribution proportional to the product of `potentials`.

    Each potential's columns must lie in a node of `tree`. Node 0 gets the log joint distribution of its columns.
    """
    held: list[list[Factor]] = [[] for _ in tree.nodes]
    for potential in potentials:
        held[home(tree, sizes, potential.columns)].append(potential)
    result: list[Factor] = []
    for index in range(len(tree.nodes) - 1, -1, -1):
        belief = Factor.ones(tree.nodes[index], sizes).absorb(held[index])
        message = belief.sum_out(set(tree.nodes[index]) - set(tree.separators[index]))
        result.append(belief.absorb([Factor(message.columns, -message.values)]))
        if index:
            held[tree.parents[index]].append(message)
    return result[::-1]


def _slices(shapes: Sequence[tuple[int, ...]]) -> list[slice]:
    """Where arrays of these shapes lie when they are laid out one after the other in a flat array."""
    ends = list(accumulate((prod(shape) for shape in shapes), initial=0))
    return [slice(start, end) for start, end in pairwise(ends)]


class Propagation:
    """Marginals of `cliques` under steps of their potentials, in flat arrays: clique k has the cells `parts[k]` (a slice).

    `layouts[k]` are the columns of clique k in the order in which its cells are stored (row-major), which is the tree's.
    `marginals` (float64, rows; each clique's add up to `total`) is overwritten by each `evaluate`.
    `bound`: largest absolute value that an entry of a step may have.
    """

    def __init__(
        self, tree: JunctionTree, sizes: Mapping[str, int], cliques: Sequence[Clique], total: float
    ) -> None:
        self._tree, self._sizes, self._total = tree, sizes, total
        homes = [home(tree, sizes, clique) for clique in cliques]
        self.layouts = [
            tuple(n for n in tree.nodes[at] if n in clique) for at, clique in zip(homes, cliques, strict=True)
        ]
        self._shapes = [self._shape(layout) for layout in self.layouts]
        self.parts = _slices(self._shapes)
        self.marginals = np.zeros(self.parts[-1].stop if self.parts else 0)
        self._factors = np.ones_like(self.marginals)
        self.bound = LOG_RANGE / max(1, len(cliques))

        self._beliefs = [np.empty(self._shape(node)) for node in tree.nodes]
        self._trials = [np.empty(self._shape(node)) for node in tree.nodes]
        # Per separator: the upward message, the trial's mass, the inverse of the current mass, trial mass / message. Parts of the
        # tree without a common column need no messages; each is scaled to the total by itself.
        outer = [self._shape(separator) for separator in tree.separators]
        parts = _slices(outer)
        self._flat_messages, self._flat_masses, self._flat_inverses, flat_ratios = (
            np.zeros(parts[-1].stop) for _ in range(4)
        )
        self._messages, self._masses, self._inverses, self._ratios = (
            [flat[part].reshape(shape) for part, shape in zip(parts, outer, strict=True)]
            for flat in (self._flat_messages, self._flat_masses, self._flat_inverses, flat_ratios)
        )
        self._linked = [bool(separator) for separator in tree.separators]
        scopes: list[list[Scope]] = [[] for _ in tree.nodes]
        for k, (factor, margin) in enumerate(
            zip(self.views(self._factors), self.views(self.marginals), strict=True)
        ):
            scopes[homes[k]].append(Scope(self.layouts[k], factor, margin))
        for index, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if separator:
                scopes[index].append(Scope(separator, self._inverses[index], None, read_only=True))
                scopes[parent].append(
                    Scope(separator, self._messages[index], self._masses[index], read_only=True)
                )
        tops = [merge(held, sizes, node) for held, node in zip(scopes, tree.nodes, strict=True)]
        self._small: list[list[Product]] = [
            [step for top in held for step in top.products()] for held in tops
        ]
        self._large = [
            [aligned(top.factor, top.columns, node) for top in held]
            for held, node in zip(tops, tree.nodes, strict=True)
        ]
        self._down: list[list[tuple[str, Array]]] = [
            [(subscripts(node, top.columns), top.margin) for top in held if top.margin is not None]
            for held, node in zip(tops, tree.nodes, strict=True)
        ]
        self._sums: list[list[Sum]] = [[step for top in held for step in top.sums()] for held in tops]
        self._to_separator = [
            subscripts(node, sep) for node, sep in zip(tree.nodes, tree.separators, strict=True)
        ]
        self._ratio_views = [
            aligned(ratio, sep, node)
            for ratio, sep, node in zip(self._ratios, tree.separators, tree.nodes, strict=True)
        ]

    def _shape(self, columns: Clique) -> tuple[int, ...]:
        return tuple(self._sizes[name] for name in columns)

    def views(self, flat: Array) -> list[Array]:
        """Each clique's part of a flat array, as a view of its shape."""
        return [flat[part].reshape(shape) for part, shape in zip(self.parts, self._shapes, strict=True)]

    def start(self, potentials: Sequence[Factor]) -> None:
        """Make the distribution proportional to the product of `potentials` (log space) the current one."""
        tree = self._tree
        for index, factor in enumerate(log_conditionals(tree, self._sizes, potentials)):
            belief = self._beliefs[index]
            np.exp(factor.values, out=belief)
            if not self._linked[index]:
                belief *= self._total
                continue
            parent = tree.parents[index]
            np.einsum(
                subscripts(tree.nodes[parent], tree.separators[index]),
                self._beliefs[parent],
                out=self._masses[index],
            )
            belief *= aligned(self._masses[index], tree.separators[index], tree.nodes[index])
        self._invert()

    def _invert(self) -> None:
        np.maximum(self._flat_masses, EMPTY, out=self._flat_inverses)
        np.reciprocal(self._flat_inverses, out=self._flat_inverses)

    def evaluate(self, step: Array) -> None:
        """Set `marginals` to those after the potentials change by `step` (flat, each entry within `bound`)."""
        np.exp(step, out=self._factors)
        trials, linked, messages, einsum, multiply = (
            self._trials,
            self._linked,
            self._messages,
            np.einsum,
            np.multiply,
        )
        for index in range(len(trials) - 1, -1, -1):
            for left, right, out in self._small[index]:
                multiply(left, right, out=out)
            source, trial = self._beliefs[index], trials[index]
            for factor in self._large[index]:
                multiply(source, factor, out=trial)
                source = trial
            if source is not trial:
                np.copyto(trial, source)
            if linked[index]:
                einsum(self._to_separator[index], trial, out=messages[index])
        self._flat_messages += TINY
        for index, trial in enumerate(trials):
            if linked[index]:
                np.divide(self._masses[index], messages[index], out=self._ratios[index])
                trial *= self._ratio_views[index]
            else:
                trial *= self._total / trial.sum()
            for expression, margin in self._down[index]:
                einsum(expression, trial, out=margin)
            for expression, larger, margin in self._sums[index]:
                einsum(expression, larger, out=margin)

    def accept(self) -> None:
        """Make the distribution last evaluated the current one."""
        self._beliefs, self._trials = self._trials, self._beliefs
        self._invert()
