"""Which client holds which row of a table: by clusters, by skew of the label, or at random; and SynthFS.

    cluster      K-means with one centre a client, on the first 12 principal components of the rows (one-hot codes of columns of
                 few values, standardised codes of wide ones): features and sizes differ from client to client
    label:BETA   the rows of each label are dealt by shares drawn from a Dirichlet distribution: the smaller BETA, the more skewed
    iid          at random, parts of equal size
    SynthFS      (a table) column j of client k is normal around a mean drawn from a Zipf distribution: FLAIM's skew of features

Sources and the papers' figures: `docs/design/flaim.md` 6. Seeds are arguments: public tables only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from runner.bench.utility.tables import DEGREE, Table
from synth.domain import Codes, Domain
from synth.judgement.metrics import marginal

COMPONENTS: Final = 12
NARROW: Final = 16
"""Columns of at most so many values are one-hot coded for clusters."""
ITERATIONS: Final = 50
SYNTH_FS_ROWS, SYNTH_FS_COLUMNS, SYNTH_FS_MEANS, SYNTH_FS_BINS = 50_000, 10, 40, 40

Places = NDArray[np.int64]
"""Of each row, the number of its client."""


@dataclass(frozen=True)
class Split:
    """A way to split. text: as it was asked for. beta: of the skew, where there is one."""

    text: str
    beta: float | None = None

    @classmethod
    def parse(cls, text: str) -> Split:
        """Read cluster, iid or label:BETA. Raises `UsageError`."""
        name, _, beta = text.partition(":")
        try:
            value = float(beta) if beta else None
        except ValueError:
            value = None
        if (name in ("cluster", "iid", "own") and not beta) or (
            name == "label" and value is not None and value > 0
        ):
            return cls(text, value)
        raise UsageError(
            f"There is no split {text!r}; there are cluster, label:BETA with BETA above 0, and iid."
        )

    def places(self, table: Table, clients: int, rng: np.random.Generator) -> Places:
        """Deal the rows of a table to clients. Raises `UsageError` for a label that the table lacks."""
        if self.text == "iid":
            return rng.permutation(np.arange(len(table.codes)) % clients)
        if self.beta is None:
            return clusters(features(table), clients, rng)
        if table.label is None:
            raise UsageError(f"The table {table.name} has no label to split by: use cluster or iid.")
        return by_label(table.codes[:, table.domain.names.index(table.label)], clients, self.beta, rng)


def by_label(labels: NDArray[np.int64], clients: int, beta: float, rng: np.random.Generator) -> Places:
    """Deal the rows of each label by shares of a Dirichlet distribution."""
    places = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        ends = np.floor(np.cumsum(rng.dirichlet(np.full(clients, beta))) * len(rows) + 0.5)
        places[rows] = np.searchsorted(ends, np.arange(len(rows)), side="right").clip(0, clients - 1)
    return places


def features(table: Table) -> NDArray[np.float64]:
    """The first principal components of the rows, (rows, at most COMPONENTS)."""
    parts = []
    for place, size in enumerate(table.domain.sizes.values()):
        codes = table.codes[:, place]
        if size <= NARROW:
            parts.append(np.eye(size)[codes])
        else:
            spread = codes.std()
            parts.append(((codes - codes.mean()) / (spread if spread else 1.0))[:, None])
    matrix = np.concatenate(parts, axis=1)
    matrix -= matrix.mean(axis=0)
    _, vectors = np.linalg.eigh(matrix.T @ matrix)
    return np.asarray(matrix @ vectors[:, ::-1][:, :COMPONENTS])


def clusters(points: NDArray[np.float64], count: int, rng: np.random.Generator) -> Places:
    """Lloyd's K-means from `count` distinct random rows: of each row, its nearest centre."""
    centres = points[rng.permutation(len(points))[:count]]
    places = np.full(len(points), -1)
    for _ in range(ITERATIONS):
        nearest = (np.square(centres).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
        if np.array_equal(nearest, places):
            break
        places = nearest
        sizes = np.bincount(places, minlength=count)
        sums = np.stack([np.bincount(places, column, count) for column in points.T], axis=1)
        filled = sizes > 0
        centres[filled] = sums[filled] / sizes[filled, None]
    return places.astype(np.int64)


def synth_fs(beta: float, clients: int, rng: np.random.Generator) -> tuple[Table, Places]:
    """SynthFS and its own split: the smaller BETA, the more the clients' means differ (at least above 0)."""
    per_client = SYNTH_FS_ROWS // clients
    chances = np.arange(1, SYNTH_FS_MEANS + 1) ** -beta
    means = 1 + rng.choice(SYNTH_FS_MEANS, (clients, SYNTH_FS_COLUMNS), p=chances / chances.sum())
    places = np.repeat(np.arange(clients), per_client)
    values = rng.normal(means[places], 1.0)
    codes = np.floor(values).clip(0, SYNTH_FS_BINS - 1).astype(np.int64)
    names = tuple(f"x{j}" for j in range(SYNTH_FS_COLUMNS))
    domain = Domain(names, (Codes(SYNTH_FS_BINS),) * SYNTH_FS_COLUMNS)
    kept = rng.random(len(codes)) < 0.9
    return Table(f"synthfs:{beta:g}", domain, codes[kept], codes[~kept]), places[kept]


def heterogeneity(table: Table, places: Places) -> float:
    """Mean over clients and the workload's closure of the total variation of a client's marginal to
    everybody's; 0..1."""
    found = []
    for clique in table.workload.closure:
        if len(clique) > DEGREE:
            continue
        everybody = marginal(table.codes, table.domain, clique) / len(table.codes)
        for client in np.unique(places):
            rows = table.codes[places == client]
            found.append(np.abs(marginal(rows, table.domain, clique) / len(rows) - everybody).sum() / 2)
    return float(np.mean(found))
