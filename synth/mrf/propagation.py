"""Belief propagation on a junction tree: the loop of the fit, in arrays that are allocated once.

Problem: the fit needs, hundreds of times, the marginals of the measured cliques after a change of their
potentials. Private-PGM (McKenna et al. 2019; `docs/design/algorithms.md` 5) recalibrates from the potentials
in log space every time. Here the calibrated tree is itself the state: a step multiplies every clique's belief
and sends the messages that make the tree agree again,

    leaves first:  trial(C) = belief(C) / belief(S) * prod exp(step of the measured cliques in C) * prod messages of C's children
                   message(S) = sum of trial(C) down to the separator S
    root first:    new belief(C) = trial(C) * new belief(S) / message(S)

belief(C) / belief(S) is a conditional distribution, so a message lies between the smallest and the largest
product of the step's factors: nothing overflows or vanishes however long the fit runs, as long as one step is
bounded (`Propagation.bound`), and no logarithm or exponential is ever taken over a whole clique, only over
the measured ones. A slice with less than `EMPTY` rows is treated as if it had that many, which only makes it
smaller still (the final model is rebuilt from the potentials, in log space, where nothing is lost).
`schedule.py` decides how a clique's factors and marginals share passes. A table at a coarser level than its
clique (`levels.py`) has a second one at the clique's: factors are repeated into it, marginals summed from it,
by one list of cell numbers. What has all the columns of its clique is summed from the clique's own table, and a clique of the
tree that was measured is a part of `Propagation.marginals` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from synth.mrf.factor import Array, Factor, aligned
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains, Index
from synth.mrf.schedule import Product, Scope, Sum, merge, subscripts, sums

LOG_RANGE = (
    200.0  # all factors of one step together stay within exp(+-LOG_RANGE); float64 ends near exp(+-700)
)
EMPTY = 1e-150  # rows; 1 / EMPTY times a step's factors still fits a float64
TINY = 1e-300  # keeps 0 / 0 at 0 and changes no message that is not 0


class _Lift(NamedTuple):
    """A table at a coarser level than its node. cells: of each cell at the node's levels, the table's; coarse,
    fine: the table's cells and those, flat; fine is None where they are the node's own table."""

    cells: Index
    coarse: Array
    fine: Array | None

    def repeat(self) -> None:
        """Fill the finer cells from the table's."""
        np.take(self.coarse, self.cells, out=self.fine, mode="clip")

    def sum(self, values: Array) -> None:
        """Fill the table from the finer cells `values`."""
        self.coarse[:] = np.bincount(self.cells, values.reshape(-1), len(self.coarse))


def home(tree: JunctionTree, chains: Chains, clique: Clique) -> int:
    """Index of the smallest node that contains `clique`; ValueError if none does."""
    wanted = set(clique)
    fitting = [index for index, members in enumerate(tree.members) if wanted <= members]
    if not fitting:
        raise ValueError(f"No clique of the model contains ({', '.join(clique)}).")
    return min(fitting, key=lambda index: (prod(chains.sizes[name] for name in tree.nodes[index]), index))


def conditionals(tree: JunctionTree, chains: Chains, potentials: Sequence[Factor]) -> list[Array]:
    """Conditional of each node given its separator, for the distribution proportional to the product of
    `potentials`.

    Each potential's columns must lie in a node of `tree`. Node 0 gets the joint distribution of its columns.
    A cell may be impossible (-inf): so it stays, and a separator's value that is gives a conditional of
    nothing but zeros. ValueError if all cells are.
    """
    held: list[list[Factor]] = [[] for _ in tree.nodes]
    for potential in potentials:
        held[home(tree, chains, potential.columns)].append(potential)
    result: list[Array] = []
    for index in range(len(tree.nodes) - 1, -1, -1):
        node, separator = tree.nodes[index], tree.separators[index]
        belief = np.zeros([chains.sizes[name] for name in node])
        for factor in held[index]:
            belief += chains.lifted(factor.values, factor.columns, node)
        weights, total, message = chains.log_summed(belief, node, separator)
        if not total.any():
            raise ValueError(f"The potentials leave no possible cell of ({', '.join(node)}).")
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        weights *= chains.lifted(inverse, separator, node)
        result.append(weights)
        if index:
            held[tree.parents[index]].append(Factor(separator, message))
    return result[::-1]


def _slices(shapes: Sequence[tuple[int, ...]]) -> list[slice]:
    """Where arrays of these shapes lie when they are laid out one after the other in a flat array."""
    ends = list(accumulate((prod(shape) for shape in shapes), initial=0))
    return [slice(start, end) for start, end in pairwise(ends)]


class Propagation:
    """Marginals of `cliques` under steps of their potentials, in flat arrays: clique k has the cells
    `parts[k]` (a slice).

    `layouts[k]` are the columns of clique k in the order in which its cells are stored (row-major), which is
    the tree's. `marginals` (float64, rows; each clique's add up to `total`) is overwritten by each
    `evaluate`. `bound`: largest absolute value that an entry of a step may have.
    """

    def __init__(self, tree: JunctionTree, chains: Chains, cliques: Sequence[Clique], total: float) -> None:
        self._tree, self._chains, self._total = tree, chains, total
        self._sizes = sizes = chains.sizes
        homes = [home(tree, chains, clique) for clique in cliques]
        self.layouts = [
            self._arranged(clique, tree.nodes[at]) for at, clique in zip(homes, cliques, strict=True)
        ]
        self._shapes = [self._shape(layout) for layout in self.layouts]
        self.parts = _slices(self._shapes)
        self.marginals = np.zeros(self.parts[-1].stop if self.parts else 0)
        self._factors = np.ones_like(self.marginals)
        self.bound = LOG_RANGE / max(1, len(cliques))

        # The measured clique that is all of a node, if one is: its part of `marginals` is the node's table.
        own = {at: k for k, at in enumerate(homes) if self.layouts[k] == tree.nodes[at]}
        self._current = np.zeros_like(self.marginals)
        current, marginals = self.views(self._current), self.views(self.marginals)
        shapes = list(map(self._shape, tree.nodes))
        self._beliefs = [current[own[at]] if at in own else np.empty(of) for at, of in enumerate(shapes)]
        self._trials = [marginals[own[at]] if at in own else np.empty(of) for at, of in enumerate(shapes)]
        self._exchanged = [at for at in range(len(shapes)) if at not in own]
        # Per separator: the upward message, the trial's mass, the inverse of the current mass, trial mass /
        # message. Parts of the tree without a common column need no messages; each is scaled to the total by
        # itself.
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
        self._lifted_factors: list[_Lift] = []
        self._lifted_inverses: list[_Lift] = []
        self._lifted_messages: list[_Lift | None] = [None] * len(tree.nodes)
        self._lifted_margins: list[list[_Lift]] = [[] for _ in tree.nodes]

        self._cells: dict[tuple[Clique, Clique], Index] = {}

        def margin_of(values: Array, columns: Clique, at: int) -> tuple[Array | None, bool]:
            """Where to sum a marginal of a node into, None if that is the node's own table; whether it is."""
            names, finer, lift = self._raised(values, columns, tree.nodes[at])
            whole = names == tree.nodes[at]
            if lift:
                self._lifted_margins[at].append(lift._replace(fine=None) if whole else lift)
            return (None if whole else finer), whole

        for k, (factor, margin) in enumerate(zip(self.views(self._factors), marginals, strict=True)):
            columns, at = self.layouts[k], homes[k]
            target, whole = margin_of(margin, columns, at)
            columns, factor, lift = self._raised(factor, columns, tree.nodes[at])
            if lift:
                self._lifted_factors.append(lift)
            scopes[at].append(Scope(columns, factor, target, whole=whole))
        self._to_separator: list[tuple[str, Array, _Lift | None]] = []
        self._ratio_views: list[tuple[Array, _Lift | None]] = []
        for index, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            node = tree.nodes[index]
            columns, message, down = self._raised(self._messages[index], separator, node)
            self._to_separator.append((subscripts(node, columns), message, down))
            columns, ratio, lift = self._raised(self._ratios[index], separator, node)
            self._ratio_views.append((aligned(ratio, columns, node), lift))
            if separator:
                columns, inverse, lift = self._raised(self._inverses[index], separator, node)
                if lift:
                    self._lifted_inverses.append(lift)
                scopes[index].append(Scope(columns, inverse, None, read_only=True))
                mass, whole = margin_of(self._masses[index], separator, parent)
                columns, message, lift = self._raised(self._messages[index], separator, tree.nodes[parent])
                self._lifted_messages[index] = lift
                scopes[parent].append(Scope(columns, message, mass, read_only=True, whole=whole))
        tops = [merge(held, sizes, node) for held, node in zip(scopes, tree.nodes, strict=True)]
        self._small: list[list[Product]] = [
            [step for top in held for step in top.products()] for held in tops
        ]
        self._large = [
            [aligned(top.factor, top.columns, node) for top in held]
            for held, node in zip(tops, tree.nodes, strict=True)
        ]
        self._sums: list[list[Sum]] = [sums(held, node) for held, node in zip(tops, tree.nodes, strict=True)]

    def _raised(self, values: Array, columns: Clique, node: Clique) -> tuple[Clique, Array, _Lift | None]:
        """A table at the levels of a node that holds its columns: names, cells, and how these follow from the
        table if they are not its own."""
        names = self._chains.at(columns, node)
        if names == columns:
            return columns, values, None
        names = tuple(name for name in node if name in names)
        cells = self._cells.get((columns, names))
        if cells is None:
            cells = self._cells[columns, names] = self._chains.cells_of(columns, names)
        finer = np.empty(self._shape(names))
        return names, finer, _Lift(cells, values.reshape(-1), finer.reshape(-1))

    def _arranged(self, clique: Clique, node: Clique) -> Clique:
        """The clique's names in the order of the node's columns."""
        names = {self._chains.column[name]: name for name in clique}
        return tuple(
            names[column] for column in map(self._chains.column.__getitem__, node) if column in names
        )

    def _shape(self, columns: Clique) -> tuple[int, ...]:
        return tuple(self._sizes[name] for name in columns)

    def views(self, flat: Array) -> list[Array]:
        """Each clique's part of a flat array, as a view of its shape."""
        return [flat[part].reshape(shape) for part, shape in zip(self.parts, self._shapes, strict=True)]

    def start(self, potentials: Sequence[Factor]) -> None:
        """Make the distribution proportional to the product of `potentials` (log space) the current one, and
        `marginals` its own."""
        nodes, separators = self._tree.nodes, self._tree.separators
        for index, conditional in enumerate(conditionals(self._tree, self._chains, potentials)):
            outer: Array | float = self._total
            if self._linked[index]:
                outer = self._chains.lifted(self._masses[index], separators[index], nodes[index])
            np.multiply(conditional, outer, out=self._trials[index])
            self._collect(index)
        self.accept()

    def conditionals(self) -> list[Array]:
        """Conditional of each node given its separator, of the current distribution."""
        return [
            belief * self._chains.lifted(inverse, separator, node) if linked else belief / self._total
            for belief, inverse, linked, node, separator in zip(
                self._beliefs,
                self._inverses,
                self._linked,
                self._tree.nodes,
                self._tree.separators,
                strict=True,
            )
        ]

    def _invert(self) -> None:
        np.maximum(self._flat_masses, EMPTY, out=self._flat_inverses)
        np.reciprocal(self._flat_inverses, out=self._flat_inverses)
        for lift in self._lifted_inverses:
            lift.repeat()

    def evaluate(self, step: Array) -> None:
        """Set `marginals` to those after the potentials change by `step` (flat, each entry within `bound`)."""
        np.exp(step, out=self._factors)
        for lift in self._lifted_factors:
            lift.repeat()
        trials, linked, multiply = self._trials, self._linked, np.multiply
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
                expression, message, down = self._to_separator[index]
                if down is None:
                    np.einsum(expression, trial, out=message)
                elif message.size == trial.size:
                    down.sum(trial)
                else:
                    np.einsum(expression, trial, out=message)
                    down.sum(message)
                if up := self._lifted_messages[index]:
                    up.repeat()
        self._flat_messages += TINY
        for index, trial in enumerate(trials):
            if linked[index]:
                np.divide(self._masses[index], self._messages[index], out=self._ratios[index])
                ratio, up = self._ratio_views[index]
                if up:
                    up.repeat()
                trial *= ratio
            else:
                trial *= self._total / trial.sum()
            self._collect(index)

    def _collect(self, index: int) -> None:
        """Sum a node's trial down to its marginals, and to the masses of its children's separators."""
        trial = self._trials[index]
        for expression, source, margin in self._sums[index]:
            np.einsum(expression, trial if source is None else source, out=margin)
        for lift in self._lifted_margins[index]:
            lift.sum(trial if lift.fine is None else lift.fine)

    def accept(self) -> None:
        """Make the distribution last evaluated the current one."""
        for index in self._exchanged:
            self._beliefs[index], self._trials[index] = self._trials[index], self._beliefs[index]
        np.copyto(self._current, self.marginals)
        self._invert()
