"""Which marginals a bundle holds, and every marginal inside them.

A contributor comes once, before anything is released, so what it leaves must cover all that the run may ask
for: the maximal ones of the columns and of the candidates (`docs/design/federated.md` 3). Everything smaller
is a sum of cells, modulo 2^32 of a part as of the counts. Public and deterministic: a function of the study.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.public.cliques import CliqueRegister, Derivation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cells = Callable[[Sequence[Clique]], "list[NDArray[Any]]"]
"""The marginals of these cliques, inside the layout's, flat in row-major order, in the ring or the integers
of their source."""


@dataclass(frozen=True)
class Layout:
    """The marginals of a bundle, one after the other, each in row-major order. sizes: values of each column
    that they name."""

    cliques: tuple[Clique, ...]
    sizes: Mapping[str, int]

    @cached_property
    def cells(self) -> int:
        """Of all marginals."""
        return sum(map(self._cells, self.cliques))

    @cached_property
    def hash(self) -> bytes:
        """32 bytes."""
        content = {"cliques": self.cliques, "sizes": {name: self.sizes[name] for name in sorted(self.sizes)}}
        return hashlib.sha256(b"cosynth-layout-1" + json.dumps(content).encode()).digest()

    def places(self) -> Iterator[tuple[Clique, slice]]:
        """Where each marginal stands."""
        ends = accumulate(map(self._cells, self.cliques), initial=0)
        return ((clique, slice(*place)) for clique, place in zip(self.cliques, pairwise(ends), strict=True))

    def marginals(self, cells: NDArray[np.integer[Any]]) -> Cells:
        """All marginals inside those of a vector of (cells,). The result raises `StudyInvalid` for one that
        is not inside."""
        if cells.shape != (self.cells,):
            raise ValueError(f"A layout of {self.cells} cells was given an array of shape {cells.shape}.")
        where = dict(self.places())

        def of(cliques: Sequence[Clique]) -> list[NDArray[Any]]:
            found = []
            for clique in cliques:
                source = self._source(clique)
                derivation = Derivation(
                    source,
                    tuple(self.sizes[name] for name in source),
                    tuple(source.index(name) for name in clique),
                    (None,) * len(clique),
                )
                found.append(derivation.apply(cells[where[source]]))
            return found

        return of

    @cached_property
    def _names(self) -> list[frozenset[str]]:
        return [frozenset(clique) for clique in self.cliques]

    def _cells(self, clique: Clique) -> int:
        return math.prod(self.sizes[name] for name in clique)

    def _source(self, clique: Clique) -> Clique:
        inside = [of for of, names in zip(self.cliques, self._names, strict=True) if names.issuperset(clique)]
        if not inside:
            raise StudyInvalid(
                f"The marginal of {', '.join(clique)} was asked for, and bundles of this study do not hold it; use the same "
                "version at all parties."
            )
        return min(inside, key=self._cells)


def layout_of(facts: StudyFacts, cliques: Sequence[Clique]) -> Layout:
    """The layout for all that may be asked. Raises `StudyInvalid`: too many cells."""
    return Layout(tuple(CliqueRegister(facts).to_share(cliques)), dict(facts.sizes))
