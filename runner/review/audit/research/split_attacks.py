"""What the two owners of a training can infer from the tensors of split learning, as functions of these
tensors alone.

    spectral     rows apart along the first singular direction of a batch (FLORIST, section 5: its score for "is invented")
    labels_read  the sign of a gradient along the first singular direction of its batch (Li et al. 2022: label leakage)
    nearest      distance to the nearest other embedding of an epoch: copies of a real row are where that row is
    negative     an embedding after a ReLU has no negative number

`docs/design/florist.md` 6 has what they reach. Scores are per row; larger means "invented"; `labels_read`
says 1 or 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2048


def spectral(tensor: NDArray[Any]) -> NDArray[np.float64]:
    """(B,) |<x_i - mean, v>|, v the first right singular vector of the centred rows of one batch."""
    centred = tensor.astype(np.float64) - tensor.mean(axis=0)
    scores: NDArray[np.float64] = np.abs(centred @ _direction(centred))
    return scores


def labels_read(batches: Sequence[NDArray[Any]], rarer: int = 1) -> list[NDArray[np.uint8]]:
    """(B,) each, the labels that the gradients of an epoch's batches show: which side of the first singular direction
    of their batch they are on.

    The rarer label's gradients are the larger ones, (p - 1) against p. In a batch of a few rows chance may have
    it otherwise: which side is which is what most rows of the epoch say, whose directions are much alike. rarer:
    which label that is, real and invented ones taken together; the study says how they are invented.
    """
    found = [gradients.astype(np.float64) for gradients in batches]
    directions = [_towards_the_larger(rows) for rows in found]
    common = sum(len(rows) * direction for rows, direction in zip(found, directions, strict=True))
    return [
        ((rows @ direction * np.sign(direction @ common) > 0) == (rarer == 1)).astype(np.uint8)
        for rows, direction in zip(found, directions, strict=True)
    ]


def _towards_the_larger(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first singular direction, with the sign of the side on which rows are larger on average."""
    direction = _direction(rows)
    along = rows @ direction
    up, down = along[along > 0], -along[along < 0]
    return direction if (up.mean() if len(up) else 0.0) > (down.mean() if len(down) else 0.0) else -direction


def nearest(batches: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """(n,) minus the distance to the nearest other row of an epoch.

    Each batch is standardised first, coordinate by coordinate: the network moves from one to the next, all
    rows much alike.
    """
    rows = np.concatenate([(batch - batch.mean(axis=0)) / (batch.std(axis=0) + 1e-6) for batch in batches])
    rows = rows.astype(np.float32)
    squares = (rows**2).sum(axis=1)
    found = np.zeros(len(rows))
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        distances = squares[start : start + len(part), None] + squares - 2 * part @ rows.T
        distances[np.arange(len(part)), start + np.arange(len(part))] = np.inf
        found[start : start + len(part)] = -np.sqrt(np.maximum(distances.min(axis=1), 0.0))
    return found


def negative(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) 1 where a number is negative."""
    found: NDArray[np.float64] = np.any(embeddings < 0, axis=1).astype(np.float64)
    return found


def _direction(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first right singular vector."""
    _, vectors = np.linalg.eigh(rows.T @ rows)
    first: NDArray[np.float64] = vectors[:, -1]
    return first
