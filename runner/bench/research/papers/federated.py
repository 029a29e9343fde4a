"""FLAIM's tables and curves, and what it prints of DistAIM (`docs/design/sources.md`), by `bench utility
--federated`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.printed import TABLES, printed
from runner.bench.research.federated.runs import Source
from runner.bench.research.federated.splits import Split, heterogeneity
from runner.bench.research.papers.paper import Figure, Item, Paper, Settings, number
from runner.bench.utility.tables import read

SOURCE: Final = "Maddock, Cormode, Maple: FLAIM, KDD 2024"
CLIENTS, CHANCE, ROUNDS, DELTA, PARTITIONS = 100, 0.1, 10, 1e-5, 3
ADULT: Final = "adult"
METHODS: Final = {
    "naive": "naive:participations=all:group=1",
    "oracle": "oracle:participations=all:group=1",
    "private": "private:participations=all:group=1",
    "arriving": "arriving",
    "central": "central",
    "bayes": "bayes:group=1",
    "random": "random:participations=all:group=1",
}
"""As printed: every participation charged, no least number of clients."""
SPLITS: Final = {"iid": 0.241, "cluster": 0.525, "label:0.1": 0.531, "label:0.8": 0.332}
"""Table 5, Adult."""
MEGABYTES: Final = {"adult": 80.0}
"""Table 3: what a client of DistAIM sends, at 8 bytes a cell."""
OTHERS: Final = "Magic, Census, Covtype, Credit, Intrusion and Marketing are public but not in this folder unless it holds them"
ACCOUNTING: Final = "the printed accounting does not hold (docs/design/flaim.md 1): ours charges what holds"


@cache
def _source(directory: Path) -> Source:
    """Tables and splits, which are dear to make, once for all figures."""
    return Source(directory)


def _runs(
    settings: Settings, method: str, table: str, metrics: Sequence[str], **changes: float
) -> dict[str, tuple[float, ...]]:
    """Figures of each metric; empty if the folder lacks the table."""
    from runner.bench.research.federated.runs import Point, run

    source = _source(settings.data)
    point = Point(
        table,
        "cluster",
        CLIENTS,
        changes.get("chance", CHANCE),
        int(changes.get("rounds", ROUNDS)),
        changes.get("epsilon", 1.0),
        DELTA,
        PARTITIONS,
    )
    found: dict[str, list[float]] = {}
    for seed in range(1 if settings.quick else settings.seeds):
        world = source.world(point, seed)
        if world is None:
            return {}
        for metric, value in run(Row.parse(METHODS[method]), world).scores.items():
            if metric in metrics:
                found.setdefault(metric, []).append(value)
    return {metric: tuple(values) for metric, values in found.items()}


def _table(
    settings: Settings, methods: Sequence[str], tables: Sequence[str], metrics: Sequence[str], epsilon: float
) -> Iterator[Figure]:
    for table in tables:
        for method in methods:
            for metric, ours in _runs(settings, method, table, metrics, epsilon=epsilon).items():
                told = printed(method, table, "cluster", epsilon, metric)
                yield Figure(f"{table}, {method}, {metric}", ours, None if told is None else number(told))


def _table_1(settings: Settings) -> Iterator[Figure]:
    return _table(settings, ("bayes", "random", "naive", "private", "central"), (ADULT,), ("nll",), 5.0)


def _table_2(settings: Settings) -> Iterator[Figure]:
    methods = ("naive", "oracle", "private", "arriving", "central")
    return _table(settings, methods, TABLES, ("err", "nll"), 1.0)


def _heterogeneity(settings: Settings) -> Iterator[Figure]:
    """Table 5."""
    table = _source(settings.data).table(ADULT)
    if table is None:
        return
    for split, told in SPLITS.items():
        ours = tuple(
            heterogeneity(
                table, Split.parse(split).places(table, CLIENTS, np.random.default_rng([1, partition]))
            )
            for partition in range(1 if settings.quick else PARTITIONS)
        )
        yield Figure(f"{ADULT}, {split}", ours, number(told))


def _curve(name: str, values: Sequence[float], settings: Settings) -> Iterator[Figure]:
    for value in values:
        for method in ("naive", "private", "arriving", "central"):
            for metric, ours in _runs(settings, method, ADULT, ("err",), **{name: value}).items():
                yield Figure(f"{ADULT}, {method}, {name} {value:g}, {metric}", ours)


def _client_bytes(settings: Settings) -> Iterator[Figure]:
    """What a client of DistAIM sends: all marginals of the closure of 64 random triples, once; ours takes 4
    bytes a cell."""
    table = read(settings.data, ADULT)
    if table is None:
        return
    sizes = table.domain.sizes
    cells = 0
    for clique in table.workload.closure:
        product = 1
        for column in clique:
            product *= sizes[column]
        cells += product
    yield Figure(
        f"{ADULT}, MB a client, 8 bytes a cell as printed", (8 * cells / 1e6,), number(MEGABYTES[ADULT])
    )
    yield Figure(
        f"{ADULT}, MB a client, ours: 4 bytes a cell to one party, a seed to another", (4 * cells / 1e6,)
    )


FLAIM: Final = Paper(
    "flaim",
    SOURCE,
    (
        Item("table 1", "NLL of rows kept apart, epsilon 5", f"Adult only; {ACCOUNTING}; {OTHERS}", _table_1),
        Item(
            "table 2",
            "workload error and NLL, epsilon 1",
            f"clusters by K-means, theirs after UMAP; {ACCOUNTING}; {OTHERS}",
            _table_2,
        ),
        Item(
            "table 3",
            "the best T of 1 to 200, and traffic",
            "a sweep of T for every method; traffic: `bench paper distaim`",
        ),
        Item("table 4", "rows and columns of the data", "nothing to run"),
        Item("table 5", "how much clients differ", "clusters by K-means, theirs after UMAP", _heterogeneity),
        Item(
            "figure over p",
            "error by the chance of being there",
            "curves without figures: the order of the lines is what compares",
            partial(_curve, "chance", (0.05, 0.2, 0.5)),
            slow=True,
        ),
        Item(
            "figure over T",
            "error by rounds",
            "curves without figures; T up to 20 here, 200 there",
            partial(_curve, "rounds", (5, 20)),
            slow=True,
        ),
        Item(
            "figure over epsilon",
            "error by epsilon",
            "curves without figures",
            partial(_curve, "epsilon", (0.5, 2.0, 5.0)),
            slow=True,
        ),
        Item(
            "DP-CTGAN, Fed DP-CTGAN",
            "rows of table 1",
            "ours, untuned, by `bench utility --federated --methods dp-ctgan` (docs/design/flaim.md 7)",
        ),
    ),
)


def _distaim_table_2(settings: Settings) -> Iterator[Figure]:
    return _table(settings, ("arriving", "central"), TABLES, ("err", "nll"), 1.0)


DISTAIM: Final = Paper(
    "distaim",
    f"DistAIM, as printed in {SOURCE}",
    (
        Item(
            "FLAIM table 2",
            "DistAIM's error and NLL, epsilon 1",
            f"ours compares arrivals with the model at their noisy total, where theirs normalises; {OTHERS}",
            _distaim_table_2,
        ),
        Item(
            "FLAIM table 3",
            "what a client sends",
            "cells counted, not measured; theirs counts each receiver and a factor for the protocol besides",
            _client_bytes,
        ),
        Item(
            "rounds and time inside MPC",
            "secure exponential mechanism, noise",
            "the papers measure none: `bench select gaussian` measures ours",
        ),
    ),
)
