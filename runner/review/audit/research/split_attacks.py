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


def labels_read(gradients: NDArray[Any], rarer: int = 1) -> NDArray[np.uint8]:
    """(B,) the labels that one batch's gradients show: which side of the first singular direction they are
    on.

    The rarer label's gradients are the larger ones, (p - 1) against p. rarer: which label that is, real and
    invented ones taken together; the study says how they are invented.
    """
    rows = gradients.astype(np.float64)
    along = rows @ _direction(rows)
    up, down = along[along > 0], -along[along < 0]
    positive = (up.mean() if len(up) else 0.0) > (down.mean() if len(down) else 0.0)
    found: NDArray[np.uint8] = ((along > 0) == (positive == (rarer == 1))).astype(np.uint8)
    return found


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
