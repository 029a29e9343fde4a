"""The active owner's labels of all rows of the common table, real or invented (`docs/design/florist.md` 3).

    majority    0                         random-pos    1 with the rate of label 1, drawn once
    minority    1                         random-pred   1 with the model's probability, drawn anew at each visit; of several
                                                        draws the mean, which averages their gradients
    neighbors   as most of the 3 nearest rows with a real label in the row's first batch, by the cosine of embeddings; kept

Response (`label_epsilon` x): every row's label, real or invented, is flipped once with probability f = n /
2^64, n the least with f >= 1 / (1 + e^x) (Warner 1965), and only the response is ever used. All but
`random-pred` keep a row's label for the whole run: what is drawn again differs from what is not.

Everything here is secret. Coins come from the operating system (an argument).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.research.florist.calibrate import MINORITY, NEIGHBORS, RANDOM_POS, RANDOM_PRED

Coins = Callable[[int], bytes]
"""n -> n uniform bytes."""
NEAREST = 3


def coins(count: int, source: Coins) -> NDArray[np.uint64]:
    """So many uniform integers of 64 bits."""
    return np.frombuffer(source(8 * count), "<u8").astype(np.uint64)


def respond(labels: NDArray[np.uint8], flips: int, source: Coins) -> NDArray[np.uint8]:
    """Each label flipped with probability flips / 2^64, independently. flips: below 2^64."""
    return labels ^ (coins(len(labels), source) < np.uint64(flips)).astype(np.uint8)


class Labels:
    """values: (u,) what stands for each row. real: (u,) whether the row is this owner's."""

    def __init__(
        self,
        union: int,
        rows: NDArray[np.int64],
        labels: NDArray[Any],
        strategy: str,
        rate: float,
        flips: int,
        source: Coins,
        draws: int = 1,
    ) -> None:
        """rows, labels: the owner's own, labels 0 or 1. rate: pi. flips: of 2^64 coins; 0 for no response.
        draws: a visit's."""
        self.real: NDArray[np.bool_] = np.zeros(union, np.bool_)
        self.real[rows] = True
        self.values: NDArray[np.uint8] = np.full(union, 1 if strategy == MINORITY else 0, np.uint8)
        if strategy == RANDOM_POS:
            threshold = np.uint64(min((1 << 64) - 1, int(rate * 2.0**64)))
            self.values = (coins(union, source) < threshold).astype(np.uint8)
        self.values[rows] = labels
        if flips:
            self.values = respond(self.values, flips, source)
        self._redrawn, self._source = (draws if strategy == RANDOM_PRED else 0), source
        self._unseen: NDArray[np.bool_] = ~self.real if strategy == NEIGHBORS else np.zeros(union, np.bool_)

    def visit(
        self, rows: NDArray[np.int64], embeddings: NDArray[np.float32], probabilities: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """(B,) labels of a batch. embeddings: (B, cut); probabilities: (B,) that the model gives label 1 now."""
        found = self.values[rows].astype(np.float32)
        invented = ~self.real[rows]
        if self._redrawn:
            threshold = (np.minimum(probabilities, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
            drawn = [coins(len(rows), self._source) < threshold for _ in range(self._redrawn)]
            found[invented] = np.stack(drawn).mean(axis=0)[invented]
        elif (fresh := self._unseen[rows]).any():
            found[fresh] = _of_neighbours(embeddings[fresh], embeddings[~invented], found[~invented])
            self.values[rows[fresh]] = found[fresh].astype(np.uint8)
            self._unseen[rows] = False
        return found


def _of_neighbours(
    asked: NDArray[np.float32], known: NDArray[np.float32], labels: NDArray[np.float32]
) -> NDArray[np.float32]:
    """What most of the nearest known rows hold; 0 if there is none."""
    if not len(known):
        return np.zeros(len(asked), np.float32)
    cosine = _unit(asked) @ _unit(known).T
    count = min(NEAREST, len(known))
    nearest = np.argpartition(-cosine, count - 1, axis=1)[:, :count]
    found: NDArray[np.float32] = (labels[nearest].mean(axis=1) > 0.5).astype(np.float32)
    return found


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    found: NDArray[np.float32] = rows / np.maximum(length, np.float32(1e-12))
    return found
