"""VertiMRF's and VertiGAN's tables, by `bench utility --vertical` (Zhao and others, KDD 2024; Jiang and
others, PoPETs 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from runner.bench.research.papers.paper import Figure, Item, Paper, Settings, number
from runner.bench.research.vertical.printed import printed
from runner.bench.utility.tables import chosen
from synth.research.vertigan.critic import parameters

EPSILON, DELTA = 0.8, 1e-5
FM: Final = "vertimrf:encoder=fm:adjacency=replace"
FO: Final = "vertimrf:encoder=fo:adjacency=replace"
GAN: Final = "vertigan"
COSTS: Final = {FM: 60 * (23.1 + 67), FO: 60 * (2.5 + 67)}
"""Seconds of a party and then of the server, on Adult, one thread."""
CRITICS: Final = {
    "Census": (137, 9592),
    "Twitter": (195, 19307),
    "Web": (124, 7813),
    "Vehicle": (100, 5101),
    "HAR": (562, 158485),
    "Dilbert": (1500, 788551),
}
"""One-hot width of the first party's columns, and parameters of its critic (table 2)."""
ABSENT: Final = "public, but not among the tables here"


def _runs(
    settings: Settings,
    systems: Sequence[str],
    tables: Sequence[str],
    metrics: Sequence[str],
    epsilons: Sequence[float],
) -> Iterator[Figure]:
    from runner.bench.research.vertical.runs import Row, run

    for table in chosen(settings.data, tables)[0]:
        for epsilon in epsilons:
            for system in systems:
                row = Row.parse(system)
                found: dict[str, list[float]] = {}
                for _ in range(1 if settings.quick else settings.seeds):
                    result = run(row, table, epsilon, DELTA)
                    for metric, value in {**result.scores, "wall_s": result.wall_s}.items():
                        if metric in metrics:
                            found.setdefault(metric, []).append(value)
                for metric, values in found.items():
                    told = printed(system, table.name, metric)
                    if metric == "wall_s":
                        told = number(COSTS[system]) if system in COSTS else None
                    yield Figure(
                        f"{table.name}, {system}, epsilon {epsilon:g}, {metric}", tuple(values), told
                    )


def _splitters(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (FM, FO, GAN), ("nltcs",), ("tvd3",), (EPSILON,))


def _curves(settings: Settings) -> Iterator[Figure]:
    systems = ("vertimrf", FO, "privmrf")
    return _runs(settings, systems, ("nltcs", "adult-vfl", "br2000"), ("tvd3",), (0.4, 0.8, 1.6, 3.2))


def _costs(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (FM, FO), ("adult-vfl",), ("wall_s",), (EPSILON,))


def _gan(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (GAN,), ("nltcs",), ("tvd3",), (EPSILON,))


def _critics(settings: Settings) -> Iterator[Figure]:
    """Parameters of a critic of two layers, the hidden one half as wide as its input, as ours is."""
    for table, (width, told) in CRITICS.items():
        yield Figure(f"{table}, critic of the first party", (float(parameters(width)),), number(told))


VERTIMRF: Final = Paper(
    "vertimrf",
    "Zhao and others: VertiMRF, KDD 2024",
    (
        Item(
            "table of splitters",
            "3-way TVD on NLTCS by how columns are split",
            "the first half of the columns is the first owner's; printed is the range over its eight splits, at an epsilon "
            "that is not stated; fm has no guarantee, and fo is charged what holds (docs/design/algorithms.md)",
            _splitters,
        ),
        Item(
            "figures of TVD",
            "3-way TVD by epsilon on NLTCS, Adult and BR2000",
            "curves without figures; BR2000 here has one column more",
            _curves,
            slow=True,
        ),
        Item("figures on Fire", "the same on 305,119 rows", f"Fire is {ABSENT}"),
        Item(
            "SVM figures",
            "misclassification of one label at a time",
            "no benchmark of ours fits SVMs to 16 labels",
        ),
        Item(
            "table of costs",
            "seconds on Adult: a party, then the server",
            "another machine and other programs, all of ours on one machine; traffic is not compared, as the printed column "
            "contradicts itself",
            _costs,
            slow=True,
        ),
    ),
)


VERTIGAN: Final = Paper(
    "vertigan",
    "Jiang and others: VertiGAN, PoPETs 2023",
    (
        Item("table 1", "rows and columns of the data", "nothing to run"),
        Item(
            "table 2",
            "parameters of critics",
            "by our critic's shape, which has no bias at its output; Dilbert's printed number fits 525 hidden units, not 750",
            _critics,
        ),
        Item(
            "table 3",
            "seconds of a training",
            f"its tables (Web, Vehicle, Twitter, HAR, Dilbert, Census) are {ABSENT}",
        ),
        Item("table 4", "accuracy of a network", f"its tables are {ABSENT}; DPLT has no reproducible rules"),
        Item(
            "table 5",
            "membership attack",
            f"its tables are {ABSENT}; ours on NLTCS: docs/design/vertigan.md 5",
        ),
        Item("figures of AVD", "4-way distance by epsilon", f"its tables are {ABSENT}"),
        Item(
            "VertiMRF's table",
            "3-way TVD of VertiGAN on NLTCS",
            "printed by VertiMRF's paper; its accounting does not hold for both owners together, and ours is charged what does",
            _gan,
        ),
    ),
)
