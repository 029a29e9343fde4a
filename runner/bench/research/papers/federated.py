"""FLAIM's tables and curves, and what it prints of DistAIM (`docs/design/sources.md`), by `bench utility
--federated`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.printed import TABLES, printed
from runner.bench.research.federated.runs import Source
from runner.bench.research.federated.splits import Split, heterogeneity
from runner.bench.research.papers.paper import Claim, Figure, Item, Means, Paper, Settings, matches, number
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
CURVES: Final = ("naive", "oracle", "private", "arriving", "central")
NAIVE, ORACLE, PRIVATE, ARRIVING, CENTRAL = CURVES
CHANCES, EPSILONS, TIMES, SKEWS = (
    (0.05, 0.1, 0.2, 0.5),
    (0.5, 1.0, 2.0, 5.0),
    (5, 10, 20, 40),
    (0.1, 0.3, 1.0),
)
"""Of the curves."""
BEST: Final = {"err": 58.0, "nll": 11.0}
"""Table 3, Adult: by how many per cent DistAIM is better than AugFLAIM (Private), each at its best T."""
BEST_TIMES: Final = 2.0
"""Table 3, Adult: T of DistAIM over T of AugFLAIM (Private)."""
OTHERS: Final = "Magic, Census, Covtype, Credit, Intrusion and Marketing are public but not in this folder unless it holds them"
ACCOUNTING: Final = "the printed accounting does not hold (docs/design/flaim.md 1): ours charges what holds"


@cache
def _source(directory: Path) -> Source:
    """Tables and splits, which are dear to make, once for all figures."""
    return Source(directory)


@cache
def _runs(
    settings: Settings,
    method: str,
    table: str,
    metrics: Sequence[str] = ("err", "nll"),
    split: str = "cluster",
    **changes: float,
) -> dict[str, tuple[float, ...]]:
    """Figures of each metric; empty if the folder lacks the table. Once for all items."""
    from runner.bench.research.federated.runs import Point, run

    source = _source(settings.data)
    point = Point(
        table,
        split,
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


def _place(method: str, name: str, value: float, metric: str = "err") -> str:
    """A figure of a curve."""
    return f"{ADULT}, {method}, {name} {value:g}, {metric}"


def _curve(name: str, values: Sequence[float], settings: Settings) -> Iterator[Figure]:
    for value in values:
        for method in CURVES:
            for metric, ours in _runs(settings, method, ADULT, ("err", "nll"), **{name: value}).items():
                yield Figure(_place(method, name, value, metric), ours)


def _skews(settings: Settings) -> Iterator[Figure]:
    for value in SKEWS:
        for method in CURVES:
            for metric, ours in _runs(settings, method, ADULT, ("err",), f"label:{value:g}").items():
                yield Figure(_place(method, "skew", value, metric), ours)


def _best(settings: Settings) -> Iterator[Figure]:
    """Table 3: each method at its best T of `TIMES`."""
    errors: dict[str, dict[float, float]] = {}
    likelihoods: dict[str, dict[float, float]] = {}
    for method in (ARRIVING, PRIVATE):
        for rounds in TIMES:
            for metric, ours in _runs(settings, method, ADULT, ("err", "nll"), rounds=rounds).items():
                kept = errors if metric == "err" else likelihoods
                kept.setdefault(method, {})[rounds] = float(np.mean(ours))
    if not errors:
        return
    best = {method: min(of, key=of.__getitem__) for method, of in errors.items()}
    yield Figure(
        f"{ADULT}, best T of DistAIM ({best[ARRIVING]:g}) over Private's ({best[PRIVATE]:g})",
        (best[ARRIVING] / best[PRIVATE],),
        number(BEST_TIMES),
    )
    for metric, kept in (("err", errors), ("nll", likelihoods)):
        lower, higher = (kept[method][best[method]] for method in (ARRIVING, PRIVATE))
        yield Figure(
            f"{ADULT}, DistAIM below Private, {metric}, %",
            (100 * (1 - lower / higher),),
            number(BEST[metric]),
        )


def _all_along(
    name: str, values: Sequence[float], holds: Callable[[Callable[[str], float]], bool]
) -> Callable[[Means], bool]:
    """Whether something holds at each of these values: of a function from a method to its error there."""
    return lambda means: all(holds(lambda method: means[_place(method, name, value)]) for value in values)  # noqa: B023


def _falls(method: str, name: str, values: Sequence[float]) -> Callable[[Means], bool]:
    """Whether a method's error falls from each value to the next, or stays."""
    return lambda means: (
        all(
            matches(means[_place(method, name, later)], means[_place(method, name, earlier)])
            for earlier, later in pairwise(values)
        )
        and means[_place(method, name, values[-1])] < means[_place(method, name, values[0])]
    )


OF_EPSILON: Final = (
    Claim(
        "naively federating AIM gives the worst performance even as epsilon becomes large",
        _all_along("epsilon", EPSILONS, lambda error: error(NAIVE) >= max(map(error, CURVES))),
    ),
    Claim(
        "a clear gap between DistAIM and central AIM",
        _all_along("epsilon", EPSILONS, lambda error: not matches(error(ARRIVING), error(CENTRAL))),
    ),
    Claim(
        "AugFLAIM (Private) matches or improves upon DistAIM for larger epsilon",
        _all_along("epsilon", EPSILONS[-2:], lambda error: matches(error(PRIVATE), error(ARRIVING))),
    ),
    Claim(
        "AugFLAIM (Private) has lower error than AugFLAIM (Oracle)",
        _all_along("epsilon", EPSILONS, lambda error: error(PRIVATE) < error(ORACLE)),
    ),
)
OF_TIMES: Final = (
    Claim("with DistAIM, the error decreases as T increases", _falls(ARRIVING, "rounds", TIMES)),
    Claim(
        "for all FLAIM variations, the error usually increases when T is large",
        lambda means: all(
            means[_place(method, "rounds", TIMES[-1])]
            > min(means[_place(method, "rounds", of)] for of in TIMES[:-1])
            for method in (NAIVE, ORACLE, PRIVATE)
        ),
    ),
    Claim(
        "AugFLAIM (Private) matches DistAIM unless T is very large",
        _all_along("rounds", TIMES[:-1], lambda error: matches(error(PRIVATE), error(ARRIVING))),
    ),
)
OF_CHANCES: Final = (
    Claim(
        "when p is 0.5 or more, DistAIM almost matches central AIM",
        _all_along("chance", CHANCES[-1:], lambda error: matches(error(ARRIVING), error(CENTRAL))),
    ),
    Claim(
        "for both AugFLAIM variations, utility improves with participation",
        lambda means: _falls(PRIVATE, "chance", CHANCES)(means) and _falls(ORACLE, "chance", CHANCES)(means),
    ),
    Claim(
        "AugFLAIM (Private) matches DistAIM except when p is large",
        _all_along("chance", CHANCES[:-1], lambda error: matches(error(PRIVATE), error(ARRIVING))),
    ),
)
OF_SKEWS: Final = (
    Claim(
        "as skew decreases, NaiveFLAIM performs the worst",
        _all_along("skew", SKEWS[1:], lambda error: error(NAIVE) >= max(map(error, CURVES))),
    ),
    Claim(
        "AugFLAIM (Private) is close to DistAIM",
        _all_along("skew", SKEWS, lambda error: matches(error(PRIVATE), error(ARRIVING))),
    ),
)


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
            "DistAIM against AugFLAIM (Private), each at its best T",
            f"T of {', '.join(map(str, TIMES))}, where theirs is of 1 to 200; traffic: `bench paper distaim`",
            _best,
            slow=True,
        ),
        Item("table 4", "rows and columns of the data", "nothing to run"),
        Item("table 5", "how much clients differ", "clusters by K-means, theirs after UMAP", _heterogeneity),
        Item(
            "figure of variants",
            "error of FLAIM without parts of its scores",
            "ours has Naive, Oracle and Private, whole, as in table 2; no figures are printed, and two of its tables are absent",
        ),
        Item(
            "figure over p",
            "error by the chance of being there",
            "curves without figures",
            partial(_curve, "chance", CHANCES),
            slow=True,
            claims=OF_CHANCES,
        ),
        Item(
            "figure over T",
            "error by rounds",
            f"curves without figures; T up to {TIMES[-1]} here, 100 there",
            partial(_curve, "rounds", TIMES),
            slow=True,
            claims=OF_TIMES,
        ),
        Item(
            "figure over epsilon",
            "error by epsilon",
            "curves without figures",
            partial(_curve, "epsilon", EPSILONS),
            slow=True,
            claims=OF_EPSILON,
        ),
        Item(
            "figure over beta",
            "error by the skew of the label",
            "curves without figures",
            _skews,
            slow=True,
            claims=OF_SKEWS,
        ),
        Item(
            "figures over s",
            "error and AUC with several local rounds",
            "ours has one local round; AUC at T = 10: docs/design/flaim.md 7",
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
