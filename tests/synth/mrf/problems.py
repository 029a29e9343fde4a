"""Random small problems, and the whole joint distribution as the oracle for everything the junction tree
computes cleverly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from synth.mrf import Measurement, Model

Array = NDArray[np.float64]


@st.composite
def domains(draw: st.DrawFn, most: int = 6) -> dict[str, int]:
    """Up to `most` columns of 1 to 4 values."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most))
    return {f"c{index}": size for index, size in enumerate(sizes)}


@st.composite
def cliques_of(
    draw: st.DrawFn, sizes: Mapping[str, int], most: int = 7, widest: int = 3
) -> list[tuple[str, ...]]:
    """Cliques in any column order, repeats and nesting included."""
    one = st.permutations(list(sizes)).flatmap(
        lambda names: st.integers(1, min(widest, len(names))).map(lambda width: tuple(names[:width]))
    )
    return draw(st.lists(one, max_size=most))


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> tuple[dict[str, int], list[Measurement]]:
    """A domain and noisy measurements, negative values included."""
    sizes = draw(domains(most))
    cliques = draw(cliques_of(sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return sizes, [
        Measurement(clique, rng.normal(20, 15, cells(sizes, clique)), float(rng.uniform(0.5, 50)))
        for clique in cliques
    ]


def cells(sizes: Mapping[str, int], columns: Sequence[str]) -> int:
    return prod(sizes[name] for name in columns)


def joint(sizes: Mapping[str, int], potentials: Mapping[tuple[str, ...], Array], total: float) -> Array:
    """The full table of expected counts, one axis per column: exp of the sum of all potentials, scaled."""
    logs = np.zeros(tuple(sizes.values()))
    for clique, flat in potentials.items():
        assert list(clique) == [name for name in sizes if name in clique]
        logs = logs + flat.reshape([size if name in clique else 1 for name, size in sizes.items()])
    table = np.exp(logs - logs.max())
    return np.asarray(table * (total / table.sum()))


def project(sizes: Mapping[str, int], table: Array, columns: Sequence[str]) -> Array:
    """Marginal of a full table, flat, in the order of `columns`."""
    names = list(sizes)
    kept = sorted(names.index(name) for name in columns)
    summed = table.sum(axis=tuple(index for index in range(len(names)) if index not in kept))
    return np.asarray(summed.transpose([kept.index(names.index(name)) for name in columns]).reshape(-1))


def loss(model: Model, measurements: Sequence[Measurement]) -> float:
    """The objective of fit.py, from the model's own answers."""
    return sum(
        float(np.square(model.marginal(m.clique) - m.values).sum()) / (2 * m.variance) for m in measurements
    )


def counted(sizes: Mapping[str, int], table: NDArray[np.int64], columns: Sequence[str]) -> Array:
    """Marginal of rows of codes, flat, in the order of `columns`."""
    names = list(sizes)
    code = np.zeros(len(table), dtype=np.int64)
    for name in columns:
        code = code * sizes[name] + table[:, names.index(name)]
    return np.bincount(code, minlength=cells(sizes, columns)).astype(np.float64)
