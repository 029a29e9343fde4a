"""One federated run and what its model is worth; and the points of a table or a curve.

err    mean L1 distance of the model's marginals of the workload to everybody's, 0..2; closure: of all their subsets besides
nll    mean negative log-likelihood of real rows kept apart, in nats (`synth.judgement.metrics.likelihood`)
auc    of a prediction of the label on those rows, trained on a table drawn from the model
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.splits import Split, synth_fs
from runner.bench.research.federated.world import Outcome, World, arrivals
from runner.bench.utility.tables import Table, read
from synth.judgement.metrics import marginal, workload_error
from synth.judgement.metrics.likelihood import mean_nll
from synth.judgement.metrics.prediction import auc
from synth.mrf import Model

METRICS: Final = ("err", "closure", "nll", "auc")
SYNTH_FS: Final = "synthfs"
VARIED: Final = ("chance", "rounds", "epsilon")
"""What curves are over."""


@dataclass(frozen=True)
class Point:
    """Where a row of a table is measured. table: a name, or synthfs:BETA, which has a split of its own."""

    table: str
    split: str
    clients: int
    chance: float
    rounds: int
    epsilon: float
    delta: float
    partitions: int

    def varied(self, name: str, values: Sequence[Any]) -> list[Point]:
        """This point with each of these values of one field."""
        return [replace(self, **{name: value}) for value in values]


class Source:
    """The tables and splits of a command; what is dear to make is kept for a while."""

    def __init__(self, directory: Path) -> None:
        self.split = lru_cache(maxsize=16)(self._split)
        self.table = lru_cache(maxsize=4)(lambda name: read(directory, name))

    def world(self, point: Point, seed: int) -> World | None:
        """The world of one run: its partition, then its arrivals and noise; None if there is no such table."""
        found = self.split(point.table, point.split, point.clients, seed % point.partitions)
        if found is None:
            return None
        table, places = found
        there = arrivals(point.clients, point.chance, point.rounds, np.random.default_rng([seed, 5]))
        return World(table, places, point.clients, there, point.epsilon, point.delta, seed)

    def _split(
        self, name: str, split: str, clients: int, partition: int
    ) -> tuple[Table, NDArray[np.int64]] | None:
        rng = np.random.default_rng([1, partition])
        base, _, beta = name.partition(":")
        if base == SYNTH_FS:
            return synth_fs(float(beta or 2), clients, rng)
        table = self.table(name)
        return None if table is None else (table, Split.parse(split).places(table, clients, rng))


@dataclass(frozen=True)
class Result:
    """Figures of one run."""

    scores: Mapping[str, float]
    cpu_s: float
    arrived: int
    rho_share: float | None


def run(row: Row, world: World, predicts: bool = False) -> Result:
    """Run and score. predicts: with the AUC. Raises what the method raises."""
    began = time.process_time()
    found = row.run(world)
    spent = time.process_time() - began
    return Result(
        scores(found, world, predicts),
        spent,
        len(world.arrived),
        None if found.rho_share is None else float(found.rho_share),
    )


def scores(of: Outcome, world: World, predicts: bool) -> dict[str, float]:
    """What a model is worth, or a table without one, which has no likelihood. predicts: with the AUC."""
    table, model, drawn = world.table, of.model, of.codes
    workload, found = table.workload, dict[str, float]()
    for name, cliques in (("err", workload.cliques), ("closure", workload.closure)):
        if model is not None:
            found[name] = _error(model, table, cliques)
        elif drawn is not None:
            found[name] = workload_error(table.codes, drawn, table.domain, cliques)
    if table.test is not None and model is not None:
        found["nll"] = mean_nll(model, table.test)
        if predicts:
            drawn = model.sample(max(1, of.rows), np.random.default_rng([world.seed, 21]), sweeps=0)
    if table.test is not None and table.label is not None and predicts and drawn is not None:
        found["auc"] = auc(drawn, table.test, table.domain, table.label)
    return found


def _error(model: Model, table: Table, cliques: Sequence[Clique]) -> float:
    real = _real(table, tuple(cliques))
    answers = model.marginals(cliques)
    return float(np.mean([np.abs(of / model.total - p).sum() for of, p in zip(answers, real, strict=True)]))


_KEPT: dict[tuple[str, tuple[Clique, ...]], tuple[Table, list[NDArray[np.float64]]]] = {}


def _real(table: Table, cliques: tuple[Clique, ...]) -> list[NDArray[np.float64]]:
    """Everybody's marginals, kept for the runs that follow."""
    key = table.name, cliques
    if key not in _KEPT or _KEPT[key][0] is not table:
        counted = [marginal(table.codes, table.domain, clique) / len(table.codes) for clique in cliques]
        _KEPT[key] = table, counted
    return _KEPT[key][1]
