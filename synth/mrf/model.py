"""The fitted model: a distribution over all columns, with exact marginals, sampling and storage.

A Markov random field in exponential form, proportional to the product of one potential per measured clique
and scaled to a number of rows (Private-PGM, McKenna et al. 2019; `docs/design/algorithms.md` 5). Its junction
tree is calibrated once, in log space, when the model is made. A model is a function of differentially private
releases only: it may go to anybody the releases may go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations
from math import prod
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from synth.mrf import storage
from synth.mrf.factor import Array, Factor, Impossible, zero_factors
from synth.mrf.junction_tree import CELL_BYTES, MIB, Clique, JunctionTree, junction_tree
from synth.mrf.levels import Chains, Levels
from synth.mrf.marginals.elimination import Marginals
from synth.mrf.propagation import conditionals
from synth.mrf.rows.balance import balance, prepare
from synth.mrf.rows.sampling import sample_rows

SWEEPS = 2
"""Passes in which a table's rows are rearranged."""


class Model:
    """A distribution over a discrete domain, proportional to the product of its potentials, scaled to `total`
    rows.

    sizes: number of values of each column, in domain order. total: rows, at least 1. cliques: the measured
    cliques (domain order, without single-value columns). potentials[clique]: log weights, flat row-major,
    finite. Columns in no clique are uniform. levels: coarser versions of columns, which cliques may name in
    their place (`levels.py`), and marginals as well; used_levels: those that cliques do name. impossible:
    structural zeros, sets of columns (domain order, without single-value columns) and which of their cells
    have no mass, whatever the potentials.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        total: float,
        potentials: Mapping[Clique, Array],
        levels: Levels | None = None,
        impossible: Impossible | None = None,
        tree: JunctionTree | None = None,
        given: Sequence[Array] | None = None,
    ) -> None:
        """tree: that of these cliques in this order, then those of `impossible`, if it is at hand. given: the
        conditional of each of its nodes given its separator, if they are."""
        self.sizes = dict(sizes)
        self.impossible: Impossible = dict(impossible or {})
        self.total = float(total)
        self.potentials = dict(potentials)
        self.cliques: tuple[Clique, ...] = tuple(self.potentials)
        self._chains = Chains(self.sizes, levels or {})
        self.levels: Levels = self._chains.levels
        used = Chains.used(self.sizes, self.levels, self.cliques)
        self.used_levels: Levels = used.levels
        self.tree = tree or junction_tree(used.sizes, [*self.cliques, *self.impossible], used.coarser)
        factors = [Factor(c, v.reshape([used.sizes[n] for n in c])) for c, v in self.potentials.items()]
        factors += zero_factors(self.impossible)
        self._conditionals = conditionals(self.tree, used, factors) if given is None else given
        self._marginals = Marginals(self.tree, self._chains, self.total, self._conditionals)

    @property
    def size_mb(self) -> float:
        """MiB of its junction tree, at 8 bytes a cell."""
        sizes = self._chains.sizes
        return sum(prod(sizes[name] for name in node) for node in self.tree.nodes) * CELL_BYTES / MIB

    def marginal(self, clique: Iterable[str]) -> Array:
        """Expected counts of the cells of any set of columns: float64, flat, row-major in the order given,
        adding up to `total`.

        A level stands for its bins; no column may be named at two levels. Exact; a set inside a clique of the
        junction tree is a sum, any other is computed by variable elimination along the tree. ValueError for a
        column that is unknown or given twice.
        """
        return self.marginals([clique])[0]

    def marginals(self, cliques: Iterable[Iterable[str]]) -> list[Array]:
        """`marginal` of each clique. What several of them need is computed once (and messages of the tree are
        kept for later)."""
        return self._marginals.marginals([tuple(clique) for clique in cliques])

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        targets: Iterable[Iterable[str]] | None = None,
        sweeps: int = SWEEPS,
        pair_by_pair: bool = False,
    ) -> NDArray[np.int64]:
        """`rows` synthetic rows: codes, int64, shape (rows, columns in domain order). Deterministic given
        `rng`; pair_by_pair: the same rows in all releases of a protocol version.

        Marginals inside the junction tree's cliques match the model's to within rounding (`rows/sampling.py`
        has the bound). The rows are then rearranged (`rows/balance.py`, `sweeps` passes) so that the
        marginals of `targets` come close as well: pass the workload. None stands for all pairs of columns; no
        target, or sweeps=0, leaves the rows as drawn.
        """
        used = Chains.used(self.sizes, self.used_levels, self.cliques)
        table = sample_rows(self.tree, used, self._conditionals, rows, rng)
        wanted = (
            list(combinations(self.sizes, 2)) if targets is None else [tuple(clique) for clique in targets]
        )
        if rows > 1 and sweeps > 0:
            answers = partial(self._marginals.marginals, side_by_side=not pair_by_pair)
            balance(self.tree, used, table, wanted, answers, sweeps, rng)
        return table

    @staticmethod
    def prepare(columns: int, rows: int, targets: int, sweeps: int = SWEEPS) -> None:
        """Load and compile what `sample` takes, before there is a model: so many columns, rows, targets."""
        prepare(columns, targets, rows, sweeps)

    def to_bytes(self) -> bytes:
        """The model as an .npz archive (`storage.py`): equal models give equal bytes."""
        return storage.to_bytes(self.sizes, self.total, self.potentials, self.used_levels, self.impossible)

    @staticmethod
    def from_bytes(data: bytes) -> Model:
        """The model in an archive that may come from another party. ProtocolAborted if it is not one.

        Of the same bytes twice in a row it is the same object: what its verdict has computed, its report
        need not.
        """
        return _read(data)

    @staticmethod
    def load(path: str | PathLike[str]) -> Model:
        """Read a file that holds `to_bytes`. ProtocolAborted if its content is not a model; OSError if it
        cannot be read."""
        with open(path, "rb") as stream:
            return Model.from_bytes(stream.read(storage.MAX_BYTES + 1))


@lru_cache(maxsize=1)
def _read(data: bytes) -> Model:
    """`Model.from_bytes`."""
    content = storage.from_bytes(data)
    try:
        return Model(*content)
    except ValueError:  # structural zeros that leave nothing
        raise storage.refuse("no combination of values is possible in it") from None
