"""Factors: tables in log space over named columns, the vocabulary of the model's algebra.

A factor is an array with one axis per column. Products are sums of broadcast arrays; sums are logsumexp with
the maximum taken out first, so that weights of any magnitude (and -inf) neither overflow nor turn into NaN.
This is the plain, readable form: it assembles potentials and calibrates once per fit, while `propagation.py`
holds the loop that must be fast.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synth.mrf.junction_tree import Clique

Array = NDArray[np.float64]
Impossible = Mapping[Clique, NDArray[np.bool_]]
"""Structural zeros: sets of columns, and which of their cells cannot be, one axis a column."""


def aligned(values: Array, columns: Clique, target: Clique) -> Array:
    """A view of `values` (axes `columns`) with the axes of `target`, length 1 where `columns` lacks one."""
    order, places = _order(columns, target)
    return values.transpose(order).reshape([1 if at is None else values.shape[at] for at in places])


@lru_cache(1 << 14)
def _order(columns: Clique, target: Clique) -> tuple[list[int], list[int | None]]:
    """The axes `columns` in the order of `target`; of each column of `target`, which axis it is."""
    order = sorted(range(len(columns)), key=lambda axis: target.index(columns[axis]))
    return order, [columns.index(name) if name in columns else None for name in target]


def logsumexp(values: Array, axes: tuple[int, ...]) -> Array:
    """log(sum(exp(values))) over `axes`; -inf where all terms are -inf."""
    top = values.max(axis=axes, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        result = np.log(np.exp(values - safe).sum(axis=axes)) + safe.squeeze(axis=axes)
    return np.asarray(result, dtype=np.float64)


@dataclass(frozen=True)
class Factor:
    """`values[i, j, ...]`: natural logarithm of the weight of one cell; axis k belongs to `columns[k]`."""

    columns: Clique
    values: Array

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns) or self.values.ndim != len(self.columns):
            raise ValueError(
                f"A factor over {self.columns} needs {len(self.columns)} axes, got {self.values.ndim}."
            )

    @staticmethod
    def ones(columns: Clique, sizes: Mapping[str, int]) -> Factor:
        """The factor of weight 1 everywhere."""
        return Factor(columns, np.zeros(tuple(sizes[name] for name in columns)))

    def __mul__(self, other: Factor) -> Factor:
        """Product of weights, over the columns of both (this factor's first)."""
        columns = self.columns + tuple(name for name in other.columns if name not in self.columns)
        return Factor(
            columns,
            aligned(self.values, self.columns, columns) + aligned(other.values, other.columns, columns),
        )

    def sum_out(self, columns: Collection[str]) -> Factor:
        """Marginal weight once `columns` are summed over."""
        axes = tuple(axis for axis, name in enumerate(self.columns) if name in columns)
        if not axes:
            return self
        return Factor(
            tuple(name for name in self.columns if name not in columns), logsumexp(self.values, axes)
        )

    def project(self, columns: Clique) -> Factor:
        """Marginal weight over `columns`, in that order."""
        rest = self.sum_out(set(self.columns) - set(columns))
        return Factor(columns, rest.values.transpose([rest.columns.index(name) for name in columns]))


def zero_factors(impossible: Impossible) -> list[Factor]:
    """Factors that leave the impossible cells no weight and change no other."""
    return [Factor(clique, np.where(cells, -np.inf, 0.0)) for clique, cells in impossible.items()]


def varying(impossible: Impossible) -> dict[Clique, NDArray[np.bool_]]:
    """Without the columns of a single value. ValueError if there is nothing else, and it is impossible."""
    found: dict[Clique, NDArray[np.bool_]] = {}
    for clique, cells in impossible.items():
        names = tuple(name for name, size in zip(clique, cells.shape, strict=True) if size > 1)
        if names:
            held = cells.reshape([size for size in cells.shape if size > 1])
            found[names] = found[names] | held if names in found else held
        elif cells.any():
            raise ValueError(f"No cell of ({', '.join(clique)}) is possible.")
    return found
