"""What each owner does in the training: the paper's loop, with everything it needs as an argument.

The passive owner sends an embedding of every row that is asked for, whoever holds it; the active one returns
a gradient of every row. Both are the same bytes for a row that is invented as for one that is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Observe, unobserved

if TYPE_CHECKING:
    from synth.research.florist.fill import Features
    from synth.research.florist.labels import Labels
    from synth.research.florist.net import ActiveHalf, PassiveHalf


class Link(Protocol):
    """The other owner: tensors of (rows, cut) float32."""

    def send(self, tensor: NDArray[np.float32]) -> None:
        """Send one."""

    def receive(self, rows: int) -> NDArray[np.float32]:
        """The next one, finite."""


class Batches(Protocol):
    """The common order of work."""

    @property
    def held_out(self) -> NDArray[np.int64]:
        """Rows that are not trained on."""

    def epoch(self, number: int) -> Iterator[NDArray[np.int64]]:
        """The rows of every step of an epoch."""

    def blocks(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Rows in their order, a batch at a time."""


def train_passive(
    link: Link,
    batches: Batches,
    epochs: int,
    net: PassiveHalf,
    features: Features,
    observe: Observe = unobserved,
) -> None:
    """Train the half without labels; at last, embeddings of all held-out rows."""
    for number in range(epochs):
        for rows in batches.epoch(number):
            link.send(features.complete(rows, net.embed(features.codes[rows])))
            net.learn(features.learned(rows, link.receive(len(rows))))
        observe("fit", "epoch", number=number + 1, of=epochs)
    for rows in batches.blocks(batches.held_out):
        link.send(features.complete(rows, net.embed(features.codes[rows]), training=False))


def train_active(
    link: Link, batches: Batches, epochs: int, net: ActiveHalf, labels: Labels, observe: Observe = unobserved
) -> NDArray[np.float64]:
    """Train the half with labels; (held-out rows,) the network's own probabilities, not corrected."""
    for number in range(epochs):
        for rows in batches.epoch(number):
            embeddings = link.receive(len(rows))
            probabilities = net.predict(embeddings)
            link.send(net.learn(labels.visit(rows, embeddings, probabilities)))
        observe("fit", "epoch", number=number + 1, of=epochs)
    found: Sequence[NDArray[np.float64]] = [
        net.probabilities(link.receive(len(rows))) for rows in batches.blocks(batches.held_out)
    ]
    return np.concatenate(found) if found else np.zeros(0)
