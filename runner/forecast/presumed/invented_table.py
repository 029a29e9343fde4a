"""Invented rows whose columns are related as columns of people's data often are, or not at all. Nobody's
data, seeded.

Columns are cuts of normal variables that share a few factors, with loadings drawn evenly from -LOADING to
LOADING: a typical pair has a correlation of 0.3, the strongest of a dozen columns 0.7. A label of the study's
has the largest loadings. Values of a column are uneven: of numbers the middle ones or the low ones are the
most frequent, of others a few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synth.domain import Column, Domain

FACTORS, LOADING, LABEL_LOADING = 2, 0.8, 0.6
RAREST = 1.2
"""Of values without an order, the one of rank r has the weight r^-RAREST."""


def invented_rows(
    domain: Domain, rows: int, seed: int, label: str | None, *, related: bool
) -> NDArray[np.int64]:
    """(rows or fewer, columns) of codes: rows that the domain's constraints forbid are left out."""
    rng = np.random.default_rng([seed, len(domain)])
    loadings = rng.uniform(-LOADING, LOADING, (len(domain), FACTORS))
    if label is not None:
        loadings[domain.names.index(label)] = LABEL_LOADING
    size = np.linalg.norm(loadings, axis=1, keepdims=True)
    loadings *= np.minimum(1, 0.95 / np.maximum(size, 1e-9)) if related else 0.0
    rest = np.sqrt(1 - np.square(loadings).sum(axis=1))
    scores = (
        rng.standard_normal((rows, FACTORS)) @ loadings.T + rng.standard_normal((rows, len(domain))) * rest
    )
    codes = np.column_stack([_cut(domain[name], scores[:, at], rng) for at, name in enumerate(domain.names)])
    fits = np.ones(rows, dtype=bool)
    for clique, forbidden in domain.impossible.items():
        places = [domain.names.index(name) for name in clique]
        cells = np.ravel_multi_index([codes[:, at] for at in places], [domain.sizes[name] for name in clique])
        fits &= ~np.asarray(forbidden).reshape(-1)[cells]
    return codes[fits]


def _cut(column: Column, scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Codes of one column, int64."""
    if column.binned or column.size > 12:
        low = rng.random() < 0.5
        reach = np.exp(0.8 * scores) / np.exp(0.8 * 2.4) if low else (scores + 2.6) / 5.2
        return np.clip((reach * column.size).astype(np.int64), 0, column.size - 1)
    weights = rng.permutation(np.arange(1.0, column.size + 1) ** -RAREST)
    borders = np.quantile(scores, np.cumsum(weights / weights.sum())[:-1]) if column.size > 1 else []
    codes: NDArray[np.int64] = np.searchsorted(borders, scores).astype(np.int64)
    return codes
