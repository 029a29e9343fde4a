"""Belief propagation on a junction tree: the loop of the fit, in arrays allocated once.

Problem: the fit needs, a thousand times, the marginals of the measured cliques after a change of their potentials. Private-PGM
(McKenna et al. 2019; papers/notes.md section 4) recalibrates from the potentials in log space every time. Here the calibrated
tree itself is the state: each clique keeps its conditional distribution given its separator, and a step multiplies

    trial(clique) = conditional(clique) * prod exp(step of the measured cliques it holds) * prod messages of its children.

Summing out gives the message to the parent, dividing by it the new conditional. Since conditionals add up to one, a message lies between the
smallest and the largest product of the steps alone: nothing can overflow or vanish however long the fit runs, as long as one step
is bounded (`Propagation.bound`), and no logarithm or exponential is taken over a whole clique, only over the measured ones.
A tree is started from arbitrary potentials in log space (`start`), through `factor.Factor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from synth.mrf.factor import Array, Factor, aligned
from synth.mrf.junction_tree import Clique, JunctionTree

LOG_RANGE = 500.0  # a product of all factors of one step stays within exp(+-LOG_RANGE), far from the ends of float64


def subscripts(columns: Clique, kept: Clique) -> str:
    """The einsum expression that sums an array over `columns` down to `kept`."""
    letter = dict(zip(columns, ascii_letters, strict=False))
    return "".join(letter[name] for name in columns) + "->" + "".join(letter[name] for name in kept)


def log_conditionals(tree: JunctionTree, sizes: Mapping[str, int], potentials: Sequence[Factor]) -> list[Factor]:
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


def home(tree: JunctionTree, sizes: Mapping[str, int], clique: Clique) -> int:
    """Index of the smallest node that contains `clique`."""
    wanted = set(clique)
    fitting = [index for index, node in enumerate(tree.nodes) if wanted <= set(node)]
    if not fitting:
        raise ValueError(f"no clique of the model contains ({', '.join(clique)})")
    return min(fitting, key=lambda index: (int(np.prod([sizes[name] for name in tree.nodes[index]], dtype=object)), index))


@dataclass
class _Node:
    """One maximal clique: its current conditional, its trial and its trial belief (counts), all of the same shape."""

    conditional: Array
    trial: Array
    belief: Array
    factors: list[Array]  # exp(step) of measured cliques, broadcast to this node
    messages: list[Array]  # of the children, broadcast to this node
    message: Array  # to the parent, over the separator
    divisor: Array  # the same, broadcast to this node
    to_message: str
    parent: int
    separator: Array  # the parent's trial belief over the separator
    multiplier: Array  # the same, broadcast to this node
    to_separator: str


class Propagation:
    """Marginals of `cliques` under steps of their potentials, in flat arrays: clique k has the cells `offsets[k]:offsets[k + 1]`.

    `layouts[k]` are the columns of clique k in the order in which its cells are stored (row-major).
    `marginals` (float64, counts that add up to `total` per clique) is overwritten by each `evaluate`.
    """

    def __init__(self, tree: JunctionTree, sizes: Mapping[str, int], cliques: Sequence[Clique]) -> None:
        self._tree, self._sizes = tree, sizes
        homes = [home(tree, sizes, clique) for clique in cliques]
        self.layouts = [tuple(n for n in tree.nodes[at] if n in clique) for at, clique in zip(homes, cliques, strict=True)]
        shapes = [tuple(sizes[name] for name in layout) for layout in self.layouts]
        self.offsets = np.concatenate(([0], np.cumsum([int(np.prod(shape)) for shape in shapes], dtype=np.int64)))
        self.marginals = np.zeros(int(self.offsets[-1]))
        self._factors = np.ones_like(self.marginals)
        self.bound = LOG_RANGE / max(1, len(cliques))
        margins, factors = self.views(self.marginals), self.views(self._factors)

        self._nodes: list[_Node] = []
        whole = {layout: index for index, layout in enumerate(self.layouts)}
        for index, (node, separator) in enumerate(zip(tree.nodes, tree.separators, strict=True)):
            shape = tuple(sizes[name] for name in node)
            conditional, trial = np.empty(shape), np.empty(shape)
            # The belief of a node that was measured as a whole is that clique's marginal: no copy, no sum.
            belief = margins[whole[node]] if node in whole else np.empty(shape)
            message, outer = np.empty(shape[: len(separator)]), np.empty(shape[: len(separator)])
            parent = tree.parents[index]
            self._nodes.append(
                _Node(
                    conditional,
                    trial,
                    belief,
                    [],
                    [],
                    message,
                    aligned(message, separator, node),
                    subscripts(node, separator),
                    parent,
                    outer,
                    aligned(outer, separator, node),
                    subscripts(tree.nodes[parent], separator) if parent >= 0 else "",
                )
            )
            if parent >= 0:
                self._nodes[parent].messages.append(aligned(message, separator, tree.nodes[parent]))

        # Measured cliques inside a measured clique are summed from it, and multiplied into it, at its smaller size.
        self._sums: list[tuple[str, Array, Array]] = []
        self._products: list[tuple[Array, Array]] = []
        order = sorted(range(len(cliques)), key=lambda k: -margins[k].size)
        for rank, k in enumerate(order):
            inside = [j for j in order[:rank] if set(self.layouts[k]) <= set(self.layouts[j])]
            node = tree.nodes[homes[k]]
            if inside:
                source = self.layouts[inside[-1]]
                permutation = tuple(name for name in source if name in self.layouts[k])
                self._sums.append((subscripts(source, self.layouts[k]), margins[inside[-1]], margins[k]))
                self._products.append((factors[inside[-1]], aligned(factors[k], self.layouts[k], source)))
                assert set(permutation) == set(self.layouts[k])
            else:
                self._nodes[homes[k]].factors.append(aligned(factors[k], self.layouts[k], node))
                if self.layouts[k] != node:
                    self._sums.append((subscripts(node, self.layouts[k]), self._nodes[homes[k]].belief, margins[k]))
        self._products.reverse()

    def views(self, flat: Array) -> list[Array]:
        """Each clique's part of a flat array as a view of its shape."""
        shapes = [tuple(self._sizes[name] for name in layout) for layout in self.layouts]
        return [flat[a:b].reshape(s) for a, b, s in zip(self.offsets, self.offsets[1:], shapes, strict=False)]

    def start(self, potentials: Sequence[Factor]) -> None:
        """Make the distribution proportional to the product of `potentials` (log space) the current one."""
        for node, factor in zip(self._nodes, log_conditionals(self._tree, self._sizes, potentials), strict=True):
            np.exp(factor.values, out=node.conditional)

    def evaluate(self, step: Array, total: float) -> None:
        """Set `marginals` to those after the potentials change by `step` (flat, each within `bound`). `accept` makes it current."""
        np.exp(step, out=self._factors)
        for larger, smaller in self._products:
            larger *= smaller
        for node in reversed(self._nodes):
            source, trial = node.conditional, node.trial
            for part in node.factors:
                np.multiply(source, part, out=trial)
                source = trial
            for part in node.messages:
                np.multiply(source, part, out=trial)
                source = trial
            if source is not trial:
                np.copyto(trial, source)
            if node.parent >= 0:
                np.einsum(node.to_message, trial, out=node.message)
                trial /= node.divisor
        root = self._nodes[0]
        root.trial *= total / root.trial.sum()
        np.copyto(root.belief, root.trial)
        for node in self._nodes[1:]:
            np.einsum(node.to_separator, self._nodes[node.parent].belief, out=node.separator)
            np.multiply(node.trial, node.multiplier, out=node.belief)
        for expression, array, margin in self._sums:
            np.einsum(expression, array, out=margin)

    def accept(self) -> None:
        """Make the distribution last evaluated the current one."""
        for node in self._nodes:
            node.conditional, node.trial = node.trial, node.conditional
