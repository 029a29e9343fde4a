"""Distances between the marginals of two tables of codes (definitions checked against the papers' code:
`docs/design/algorithms.md` 6).

    workload error    mean over cliques of || p - q ||_1, each marginal divided by its own table's rows; 0..2, not halved
                      (FLAIM's Err, with their 64 random three-way cliques)
    total variation   half of it; with random k-column sets the k-way TVD of PrivMRF and VertiMRF (300 sets a draw)

Tables are integer arrays of shape (rows, columns), columns in the domain's order, codes 0..size-1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique

Codes = NDArray[np.integer[Any]]

SPARSE_FACTOR = 8
"""With so many cells per row, sorting the rows' cells is cheaper than counting all cells."""


def marginal(codes: Codes, domain: Domain, clique: Clique) -> NDArray[np.int64]:
    """Counts of the clique's cells: int64, row-major in the order of the clique's columns."""
    return np.bincount(_cells(codes, domain, clique), minlength=domain.cells(clique))


def workload_error(real: Codes, synthetic: Codes, domain: Domain, cliques: Sequence[Clique]) -> float:
    """Mean over `cliques` of the L1 distance of the normalised marginals, 0..2.

    Raises `ValueError` for an empty table, no clique, or codes outside the domain.
    """
    if not cliques or not len(real) or not len(synthetic):
        raise ValueError("An error needs at least one clique and one row in either table.")
    return sum(_distance(real, synthetic, domain, clique) for clique in cliques) / len(cliques)


def total_variation(real: Codes, synthetic: Codes, domain: Domain, cliques: Sequence[Clique]) -> float:
    """Mean over `cliques` of the total variation distance, 0..1; errors as `workload_error`."""
    return workload_error(real, synthetic, domain, cliques) / 2


def random_cliques(domain: Domain, degree: int, count: int, rng: np.random.Generator) -> list[Clique]:
    """`count` independent random sets of `degree` columns, each in domain order; repetitions are possible."""
    if not 1 <= degree <= len(domain):
        raise ValueError(f"Degree must lie between 1 and the domain's {len(domain)} columns, got {degree}.")
    return [
        domain.ordered(domain.names[i] for i in rng.choice(len(domain), degree, replace=False))
        for _ in range(count)
    ]


def _cells(codes: Codes, domain: Domain, clique: Clique) -> NDArray[np.int64]:
    """Of each row, the index of its cell."""
    if codes.ndim != 2 or codes.shape[1] != len(domain):
        raise ValueError(f"Expected a table of {len(domain)} columns, got an array of shape {codes.shape}.")
    cells = np.zeros(len(codes), dtype=np.int64)
    for name in clique:
        column = codes[:, domain.names.index(name)]
        size = domain[name].size
        if len(column) and not 0 <= column.min() <= column.max() < size:
            raise ValueError(f"The column {name} holds codes outside 0..{size - 1}.")
        cells = cells * size + column
    return cells


def _distance(real: Codes, synthetic: Codes, domain: Domain, clique: Clique) -> float:
    size = domain.cells(clique)
    if size >= 2**62:
        raise ValueError(f"The clique {', '.join(clique)} has {size:.3g} cells, too many to number.")
    ours, theirs = _cells(real, domain, clique), _cells(synthetic, domain, clique)
    if size > SPARSE_FACTOR * (len(ours) + len(theirs)):
        _, joint = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
        ours, theirs, size = joint[: len(ours)], joint[len(ours) :], int(joint.max()) + 1
    p, q = np.bincount(ours, minlength=size) / len(ours), np.bincount(theirs, minlength=size) / len(theirs)
    return math.fsum(np.abs(p - q))
