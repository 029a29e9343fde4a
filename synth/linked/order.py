"""Where in the order a person's children stand, so that as many fit as its count says
(`docs/design/linked.md` 4).

Problem: A is any of a person's children and B the one before, so the model's law of A given B is of a step
anywhere in a person's row of children. Drawn by it alone, children run ahead: the steps of somebody with many
are long at first, when much of the order is left, and those that are measured at one place come from all
numbers of children and of children still to come.

Method: children are a Markov chain along the order that may end at each of them. Counted over all people,
each with as many children as its count says, the released model has its first law, its steps and (by how many
at a place have one after them) its end. Given how many are still to come, the step to a is the chain's own
times P(that many follow | a), by recursion; the first likewise. For children that come at a rate of their own
this is exact: given their number, they are as many independent draws, sorted. These laws stand in place of
what the model says of order and count alone; all else that it knows of a child stays.

Cost: one marginal of the count and both orders; a table of (orders, orders) for each number still to come.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synth.linked.tables import ChildTable
from synth.mrf import Model
from synth.mrf.factor import Array

MAX_CHAIN_CELLS = 1 << 22
"""Of the marginal of count and orders; a larger one is left to the model."""
MIN_MASS = 1e-12


class OrderChain:
    """The chain of a released model. starts: the first child's law, by its place. steps: of the next one,
    (before, next). goes_on: at each place, the share of children that are not the last."""

    def __init__(self, model: Model, child: ChildTable) -> None:
        assert child.order is not None
        self.columns = (child.count, child.first(child.order), child.second(child.order))
        column = child.unfolded[child.count]
        numbers = np.array([sum(column.span(code)) / 2 for code in range(column.size)])
        whole = np.einsum("n,nab->ab", numbers, self.marginal(model))
        places = whole.shape[0] - 1
        pairs = np.triu(whole[:places, :places].T)  # from the one before to the next, never back
        first = whole[:places, places]
        there, going = pairs.sum(axis=0) + first, pairs.sum(axis=1)
        self.steps = pairs / np.maximum(going, MIN_MASS)[:, None]
        self.goes_on = np.minimum(going / np.maximum(there, MIN_MASS), 1.0)
        self.starts = first / max(first.sum(), MIN_MASS)
        self._follow = [1.0 - self.goes_on]

    @classmethod
    def of(cls, model: Model, child: ChildTable) -> OrderChain | None:
        """None where no column orders the children, or its marginal is too large."""
        if child.ordered_by is None:
            return None
        sizes = [
            model.sizes[name]
            for name in (child.count, child.first(str(child.order)), child.second(str(child.order)))
        ]
        return cls(model, child) if np.prod(sizes, dtype=float) <= MAX_CHAIN_CELLS else None

    def marginal(self, model: Model) -> Array:
        """Of the count and both orders, (counts, A, B)."""
        return np.asarray(model.marginal(self.columns)).reshape([model.sizes[name] for name in self.columns])

    def follow(self, more: int) -> Array:
        """P(exactly so many children follow | one stands at a), at each a."""
        while len(self._follow) <= more:
            self._follow.append(self.goes_on * (self.steps @ self._follow[-1]))
        found: Array = self._follow[more]
        return found


class Correction:
    """What a law of A is to be multiplied by. law: the model that children are drawn from."""

    def __init__(self, chain: OrderChain, law: Model) -> None:
        self._chain, self._law = chain, law

    @cached_property
    def _laws(self) -> tuple[Array, Array]:
        """log P(A | count, B is not there), (counts, A), and log P(A | count, B), (counts, B, A)."""
        whole = self._chain.marginal(self._law)
        places = whole.shape[1] - 1
        return _log(whole[:, :places, places]), _log(whole[:, :places, :places].transpose(0, 2, 1))

    def first(self, counts: NDArray[np.int64], codes: NDArray[np.int64]) -> Array:
        """Logarithms for a person's first child, (people, codes of A's order). counts: of children; codes: of
        the count."""
        some, place = np.unique(counts, return_inverse=True)
        wanted = np.stack([_log(self._chain.starts * self._chain.follow(n - 1)) for n in some])
        return _whole(wanted[place] - self._laws[0][codes])

    def following(
        self, more: NDArray[np.int64], codes: NDArray[np.int64], before: NDArray[np.int64]
    ) -> Array:
        """The same for the next child. more: how many come after it. before: the order of the child before."""
        some, place = np.unique(more, return_inverse=True)
        wanted = np.stack([_log(self._chain.steps * self._chain.follow(n)[None]) for n in some])
        found = wanted[place, before] - self._laws[1][codes, before]
        back = np.arange(found.shape[1]) < before[:, None]
        return _whole(np.where(back, -np.inf, found))


def _log(weights: Array) -> Array:
    """Logarithms of laws along the last axis."""
    sums = weights.sum(axis=-1, keepdims=True)
    found: Array = np.log(np.maximum(weights / np.maximum(sums, MIN_MASS**2), MIN_MASS))
    return found


def _whole(weights: Array) -> Array:
    """With the code of a missing place, which no child has."""
    return np.pad(weights, ((0, 0), (0, 1)), constant_values=-np.inf)
