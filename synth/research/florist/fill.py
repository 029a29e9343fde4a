"""The passive owner's features of all rows of the common table, real or invented (`docs/design/florist.md`
3).

    gaussian    an embedding ~ N(0, max ||f(x)||^2 / cut), the maximum over the batch's real rows
    random      an embedding ~ N(mean, sd) of the real embeddings, coordinate by coordinate, moving averages over batches
    sampling    a copy of a real row's columns, the same one at every visit
    model       columns drawn from a differentially private model of the owner's own columns, once for each row

What a row draws is a function of a secret key and of the row, so that it is the same in every epoch (`draw`).
Everything here is secret, and none of it hides features: embeddings tell them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.research.florist.calibrate import GAUSSIAN, RANDOM, SAMPLING

Draw = Callable[[int, int], NDArray[np.uint64]]
"""(row, count) -> so many uniform integers of 64 bits, always the same for a row: a pseudo-random function."""
DECAY = 0.9
"""Of the moving averages, a step."""


class Features:
    """codes: (u, columns) of every row, zeros where only embeddings are invented. real: (u,) whether the row
    is this owner's."""

    def __init__(
        self,
        union: int,
        rows: NDArray[np.int64],
        codes: NDArray[Any],
        strategy: str,
        draw: Draw,
        invented: NDArray[Any] | None = None,
    ) -> None:
        """rows, codes: the owner's own, (n,) and (n, columns). invented: rows of the model, as many as the
        owner lacks."""
        self.real: NDArray[np.bool_] = np.zeros(union, np.bool_)
        self.real[rows] = True
        self.codes: NDArray[Any] = np.zeros((union, codes.shape[1]), codes.dtype)
        self.codes[rows] = codes
        lacking = np.flatnonzero(~self.real)
        if strategy == SAMPLING and len(rows):
            chosen = [int(draw(int(row), 1)[0]) % len(rows) for row in lacking]
            self.codes[lacking] = codes[chosen]
        elif invented is not None:
            self.codes[lacking] = invented
        self._strategy, self._draw = strategy, draw
        self._scale = 1.0
        self._mean: NDArray[np.float64] | None = None
        self._sd: NDArray[np.float64] | None = None

    @property
    def replaces(self) -> bool:
        """Whether embeddings are invented instead of columns."""
        return self._strategy in (GAUSSIAN, RANDOM)

    def complete(
        self, rows: NDArray[np.int64], embeddings: NDArray[np.float32], training: bool = True
    ) -> NDArray[np.float32]:
        """(B, cut) what is sent for a batch. training: whether the batch counts for the averages."""
        if not self.replaces:
            return embeddings
        real = self.real[rows]
        if training and real.any():
            self._follow(embeddings[real].astype(np.float64))
        sent = embeddings.copy()
        for place in np.flatnonzero(~real):
            normal = _normals(self._draw(int(rows[place]), 2 * embeddings.shape[1]))
            if self._strategy == GAUSSIAN or self._mean is None or self._sd is None:
                sent[place] = normal * self._scale
            else:
                sent[place] = self._mean + normal * self._sd
        return sent

    def learned(self, rows: NDArray[np.int64], gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the network learns of a gradient: of an embedding that it has not made, nothing."""
        return gradient * self.real[rows, None].astype(np.float32) if self.replaces else gradient

    def _follow(self, real: NDArray[np.float64]) -> None:
        self._scale = float(np.sqrt((real**2).sum(axis=1).max() / real.shape[1]))
        mean, sd = real.mean(axis=0), real.std(axis=0)
        self._mean = mean if self._mean is None else DECAY * self._mean + (1 - DECAY) * mean
        self._sd = sd if self._sd is None else DECAY * self._sd + (1 - DECAY) * sd


def _normals(uniform: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Half as many standard normals as there are uniform integers (Box and Muller 1958)."""
    first, second = ((uniform >> np.uint64(11)).astype(np.float64) + 0.5).reshape(2, -1) * 2.0**-53
    found: NDArray[np.float64] = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
    return found
