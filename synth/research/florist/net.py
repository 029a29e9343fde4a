"""The two halves of the network, in PyTorch: the only file of the algorithm that knows it.

Passive half: an embedding of 4 numbers for every value of every column, then two layers of 128 and `cut`
units, ReLU. Active half: a layer of 128 units, ReLU, and one logit. Adam; the gradient that goes back to the
passive half is of the sum over a batch's rows, a row each; both halves step by the mean. With D' = a D + b in
the loss (`calibrate`), the cross-entropy is of a sigmoid(logit) + b. One thread and the same machine: the
same numbers give the same weights, bit for bit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from synth.research.florist.calibrate import Correction

EMBEDDING = 4
FIRST_SD = 0.1
"""Of an embedding's first weights: with 1, PyTorch's own, the network learns rare values by heart."""
WIDTH = 128
_TINY = 1e-7
"""Probabilities in a logarithm stay this far from 0 and 1."""

_FIRST_WEIGHTS = threading.Lock()
"""PyTorch draws them from a generator of the whole process; both halves may live in one, in threads."""
torch.set_num_threads(1)


class PassiveHalf:
    """From codes to embeddings. sizes: values of each column. seed: of the first weights, 63 bits; secret."""

    def __init__(self, sizes: Sequence[int], cut: int, rate: float, seed: int) -> None:
        with _FIRST_WEIGHTS, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._tables = nn.ModuleList(nn.Embedding(size, EMBEDDING) for size in sizes)
            for table in self._tables:
                nn.init.normal_(table.weight, std=FIRST_SD)
            self._layers = nn.Sequential(
                nn.Linear(EMBEDDING * len(sizes), WIDTH), nn.ReLU(), nn.Linear(WIDTH, cut), nn.ReLU()
            )
        self._net = nn.ModuleDict({"columns": self._tables, "layers": self._layers})
        self._optimiser = torch.optim.Adam(self._net.parameters(), lr=rate)
        self._sent: Any = None

    def embed(self, codes: NDArray[Any]) -> NDArray[np.float32]:
        """(B, columns) codes to (B, cut) float32, and remember how for `learn`."""
        rows = torch.from_numpy(codes.astype(np.int64))
        parts = [table(rows[:, place]) for place, table in enumerate(self._tables)]
        self._sent = self._layers(torch.cat(parts, dim=1))
        embedded: NDArray[np.float32] = self._sent.detach().numpy()
        return embedded

    def learn(self, gradient: NDArray[np.float32]) -> None:
        """Step by the gradient that came back for the last embeddings, (B, cut)."""
        self._optimiser.zero_grad()
        self._sent.backward(torch.from_numpy(gradient / np.float32(len(gradient))))
        self._optimiser.step()
        self._sent = None

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """By name, float32."""
        return _weights(self._net)


class ActiveHalf:
    """From embeddings to probabilities."""

    def __init__(self, cut: int, rate: float, seed: int, correction: Correction | None = None) -> None:
        """correction: of the loss; None leaves the loss plain."""
        with _FIRST_WEIGHTS, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = nn.Sequential(nn.Linear(cut, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
        self._optimiser = torch.optim.Adam(self._net.parameters(), lr=rate)
        self._correction = correction or Correction()
        self._received: Any = None
        self._seen: Any = None

    def predict(self, embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
        """(B,) what the loss compares labels with, a sigmoid(logit) + b, and remember how for `learn`."""
        self._received = torch.from_numpy(embeddings.copy()).requires_grad_()
        probability = torch.sigmoid(self._net(self._received)[:, 0])
        self._seen = self._correction.slope * probability + self._correction.offset
        seen: NDArray[np.float64] = self._seen.detach().numpy().astype(np.float64)
        return seen

    def learn(self, labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Step by the labels of the last embeddings, (B,); the gradient for the other half, (B, cut) float32."""
        self._optimiser.zero_grad()
        seen = self._seen.clamp(_TINY, 1 - _TINY)
        wanted = torch.from_numpy(labels)
        loss = -(wanted * torch.log(seen) + (1 - wanted) * torch.log(1 - seen)).sum()
        loss.backward()
        for parameter in self._net.parameters():
            parameter.grad /= len(labels)
        self._optimiser.step()
        gradient: NDArray[np.float32] = self._received.grad.numpy()
        self._received = self._seen = None
        return gradient

    def probabilities(self, embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
        """(B,) sigmoid(logit), of the network alone."""
        with torch.no_grad():
            found: NDArray[np.float64] = (
                torch.sigmoid(self._net(torch.from_numpy(embeddings.copy()))[:, 0]).numpy().astype(np.float64)
            )
        return found

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """By name, float32."""
        return _weights(self._net)


def _weights(net: Any) -> dict[str, NDArray[np.float32]]:
    return {name: tensor.detach().numpy().copy() for name, tensor in net.state_dict().items()}
