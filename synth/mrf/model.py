"""The fitted model: exact marginals of any columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from synth.mrf.elimination import Marginals
from synth.mrf.factor import Array, Factor
from synth.mrf.junction_tree import Clique, junction_tree
from synth.mrf.propagation import log_conditionals
from synth.mrf.sampling import sample_rows


class Model:
    """A distribution over a discrete domain, proportional to the product of its potentials, scaled to `total` rows."""

    def __init__(self, sizes: Mapping[str, int], total: float, potentials: Mapping[Clique, Array]) -> None:
        self.sizes = dict(sizes)
        self.total = float(total)
        self.potentials = dict(potentials)
        self.cliques = tuple(potentials)
        self.tree = junction_tree(self.sizes, self.cliques)
        factors = [Factor(c, v.reshape([self.sizes[n] for n in c])) for c, v in self.potentials.items()]
        self.conditionals = [np.exp(f.values) for f in log_conditionals(self.tree, self.sizes, factors)]
        self._marginals = Marginals(self.tree, self.sizes, self.total, self.conditionals)

    def marginal(self, clique: Iterable[str]) -> Array:
        """Expected counts of the cells of `clique` (flat, row-major in the order given, float64)."""
        return self._marginals.marginal(tuple(clique))

    def marginals(self, cliques: Iterable[Iterable[str]]) -> list[Array]:
        """`marginal` of each clique; partial results are shared between them."""
        return [self.marginal(clique) for clique in cliques]

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        return sample_rows(self.tree, self.sizes, self.conditionals, rows, rng)
