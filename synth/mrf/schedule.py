"""The order in which the small tables inside one large clique are multiplied and summed.

Problem: a maximal clique of the junction tree may hold a dozen measured cliques and separators. Multiplying
each into the clique and summing each out of it costs two passes over the clique apiece, and passes over large
cliques are all that the fit's time consists of. Where the union of two tables' columns is much smaller than
the clique, they are multiplied with one another first and summed from their common marginal afterwards. Both
directions follow one forest of scopes, built once per fit by greedily merging the pair with the smallest
union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from string import ascii_letters

import numpy as np

from synth.mrf.factor import Array, aligned
from synth.mrf.junction_tree import Clique

CALL_CELLS = (
    3000  # what a NumPy call costs by itself, as the number of cells it could have processed meanwhile
)

Product = tuple[Array, Array, Array]  # left, right, out
Sum = tuple[str, Array | None, Array]  # einsum subscripts, source (None: the clique's own table), out


@lru_cache(1 << 14)
def subscripts(columns: Clique, kept: Clique) -> str:
    """The einsum expression that sums an array over `columns` down to `kept`."""
    letter = dict(zip(columns, ascii_letters, strict=False))
    return "".join(letter[name] for name in columns) + "->" + "".join(letter[name] for name in kept)


@dataclass(eq=False)
class Scope:
    """Some columns of a clique with a factor to multiply in and, unless `margin` is None, a marginal to sum
    out.

    `parts` are scopes inside this one: their factors go into `factor` first, their marginals are summed from
    `margin`. The factor of a scope that is `read_only` must survive, so nothing is merged into it in place. A
    scope that is `whole` has all the clique's columns: the clique's own table is its marginal, without a copy.
    """

    columns: Clique
    factor: Array
    margin: Array | None
    read_only: bool = False
    parts: list[Scope] = field(default_factory=list)
    merged: bool = False  # made by `merge`: the factor is the product of the parts and nothing else
    whole: bool = False

    def products(self) -> list[Product]:
        """The multiplications, in order, after which `factor` includes all the parts."""
        steps = [step for part in self.parts for step in part.products()]
        factors = [aligned(part.factor, part.columns, self.columns) for part in self.parts]
        if self.merged:
            steps.append((factors[0], factors[1], self.factor))
            factors = factors[2:]
        return steps + [(self.factor, factor, self.factor) for factor in factors]


def sums(parts: Sequence[Scope], columns: Clique, margin: Array | None = None) -> list[Sum]:
    """The summations, in order, that fill the marginals of `parts` from a table over `columns` (None: the
    clique's own)."""
    steps: list[Sum] = []
    for part in parts:
        if part.margin is not None and part.margin is not margin:
            steps.append((subscripts(columns, part.columns), margin, part.margin))
        if part.whole or part.margin is not None:
            steps += sums(part.parts, part.columns, part.margin)
    return steps


def merge(scopes: Sequence[Scope], sizes: Mapping[str, int], clique: Clique) -> list[Scope]:
    """Scopes for `clique` that stand for all of `scopes`, with as few passes over the clique as pays."""

    def cells(columns: Clique) -> int:
        return prod(sizes[name] for name in columns)

    def union(first: Scope, second: Scope) -> Clique:
        return tuple(name for name in clique if name in first.columns or name in second.columns)

    scopes = list(scopes)
    while len(scopes) > 1:
        best: tuple[int, Scope, Scope, Clique] | None = None
        for index, first in enumerate(scopes):
            for second in scopes[:index]:
                columns = union(first, second)
                size = cells(columns)
                nested = columns in (first.columns, second.columns)
                if (nested or 3 * size + CALL_CELLS <= 2 * cells(clique)) and (
                    best is None or size < best[0]
                ):
                    best = (size, first, second, columns)
        if best is None:
            break
        _, first, second, columns = best
        if first.columns != columns or (first.read_only and second.columns == columns):
            first, second = second, first
        scopes = [scope for scope in scopes if scope is not first and scope is not second]
        if first.columns == columns and not first.read_only:
            first.parts.append(second)
            scopes.append(first)
        else:
            shape, whole = tuple(sizes[name] for name in columns), columns == clique
            margin = first.margin if first.columns == columns else None
            if margin is None and not whole:
                margin = np.empty(shape)
            parts = [first, second]
            scopes.append(Scope(columns, np.empty(shape), margin, parts=parts, merged=True, whole=whole))
    return scopes
