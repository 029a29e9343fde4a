"""VertiMRF's and VertiGAN's tables, by `bench utility --vertical` (Zhao and others, KDD 2024; Jiang and
others, PoPETs 2023)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from runner.bench.research.papers.paper import Claim, Figure, Item, Means, Paper, Settings, number
from runner.bench.research.vertical.printed import printed
from runner.bench.research.vertical.runs import Row, run
from runner.bench.research.vertical.splitters import by_correlation, by_importance
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
SPLITS: Final = {
    ("importance", 0.1): (0.0583, 0.234, 0.426),
    ("importance", 1.0): (0.0667, 0.249, 0.430),
    ("importance", 10.0): (0.0589, 0.257, 0.458),
    ("importance", 100.0): (0.0648, 0.266, 0.465),
    ("correlation", 0.0): (0.0735, 0.261, 0.436),
    ("correlation", 0.3): (0.0524, 0.296, 0.416),
    ("correlation", 0.6): (0.0684, 0.272, 0.438),
    ("correlation", 1.0): (0.0678, 0.281, 0.401),
}
"""3-way TVD on NLTCS of fm, fo and VertiGAN, by splitter and its parameter (VertiMRF's table 3; epsilon is
not stated)."""
EPSILONS: Final = (0.4, 0.8, 1.6, 3.2)
GAN_EPSILONS: Final = (0.5, 2.0, 8.0)
OF_CURVES: Final = ("nltcs", "adult-vfl", "br2000")
ABSENT: Final = "public, but not among the tables here"


def _runs(
    settings: Settings,
    systems: Sequence[str],
    tables: Sequence[str],
    metrics: Sequence[str],
    epsilons: Sequence[float],
) -> Iterator[Figure]:
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
                        _place(table.name, system, f"epsilon {epsilon:g}", metric), tuple(values), told
                    )


def _splitters(settings: Settings) -> Iterator[Figure]:
    for table in chosen(settings.data, ("nltcs",))[0]:
        names = table.domain.names
        for (splitter, value), printed_ in list(SPLITS.items())[:: len(SPLITS) // 2 if settings.quick else 1]:
            for system, told in zip((FM, FO, GAN), printed_, strict=True):
                found = []
                for seed in range(1 if settings.quick else settings.seeds):
                    rng = np.random.default_rng([seed, 31])
                    first = (
                        by_importance(names, value, rng)
                        if splitter == "importance"
                        else by_correlation(names, table.codes, value, rng)
                    )
                    found.append(run(Row.parse(system), table, EPSILON, DELTA, first).scores["tvd3"])
                yield Figure(
                    _place(table.name, system, f"{splitter} {value:g}", "tvd3"), tuple(found), number(told)
                )


def _place(table: str, system: str, at: str, metric: str) -> str:
    return f"{table}, {system}, {at}, {metric}"


def _curves(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (FM, FO, "privmrf"), OF_CURVES, ("tvd3",), EPSILONS)


def _everywhere(
    tables: Sequence[str], holds: Callable[[Callable[[str], float]], bool]
) -> Callable[[Means], bool]:
    """Whether something holds at each epsilon of each table: of a function from a system to its distance
    there."""

    def claimed(means: Means) -> bool:
        for table in tables:
            for epsilon in EPSILONS:
                if not holds(lambda system: means[_place(table, system, f"epsilon {epsilon:g}", "tvd3")]):  # noqa: B023
                    return False
        return True

    return claimed


CURVE_CLAIMS: Final = (
    Claim(
        "VertiMRF-FM outperforms VertiMRF-FO across all cases",
        _everywhere(OF_CURVES, lambda tvd: tvd(FM) < tvd(FO)),
    ),
    Claim(
        "the advantage of the centralised method over FM is larger on Adult and BR2000 than on NLTCS",
        lambda means: all(
            _gap(means, table, epsilon) > _gap(means, OF_CURVES[0], epsilon)
            for table in OF_CURVES[1:]
            for epsilon in EPSILONS
        ),
    ),
    Claim(
        "FM performs closely to the centralised method on NLTCS when epsilon is larger",
        lambda means: _gap(means, OF_CURVES[0], EPSILONS[-1]) < _gap(means, OF_CURVES[0], EPSILONS[0]),
    ),
)


def _gap(means: Means, table: str, epsilon: float) -> float:
    fm, central = (means[_place(table, of, f"epsilon {epsilon:g}", "tvd3")] for of in (FM, "privmrf"))
    return fm - central


def _costs(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (FM, FO), ("adult-vfl",), ("wall_s",), (EPSILON,))


def _gan(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (GAN,), ("nltcs",), ("tvd3",), (EPSILON,))


def _gan_curve(settings: Settings) -> Iterator[Figure]:
    return _runs(settings, (GAN,), ("adult-vfl",), ("tvd4", "auc"), GAN_EPSILONS)


def _improves(metric: str, sign: int) -> Callable[[Means], bool]:
    """Whether a figure of VertiGAN's rises (sign 1) or falls (-1) from each epsilon to the next."""

    def claimed(means: Means) -> bool:
        found = [sign * means[_place("adult-vfl", GAN, f"epsilon {each:g}", metric)] for each in GAN_EPSILONS]
        return found == sorted(found)

    return claimed


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
            "ours at epsilon 0.8, theirs at one that is not stated; halves by correlation are of a random search "
            "(`runner/bench/research/vertical/splitters.py`); fm has no guarantee, and fo is charged what holds "
            "(docs/design/algorithms.md)",
            _splitters,
        ),
        Item(
            "figures of TVD",
            "3-way TVD by epsilon on NLTCS, Adult and BR2000",
            "curves without figures; BR2000 here has one column more",
            _curves,
            slow=True,
            claims=CURVE_CLAIMS,
        ),
        Item("figures on Fire", "the same on 305,119 rows", f"Fire is {ABSENT}"),
        Item(
            "figure over owners",
            "3-way TVD by the number of owners",
            "`bench utility --vertical` splits among two",
        ),
        Item(
            "figure of the budget's division",
            "3-way TVD by the share of LocMRF",
            "ours divides by what holds, one way",
        ),
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
        Item(
            "table 4",
            "a classifier on VertiGAN's rows, by epsilon",
            f"its tables are {ABSENT}: AUC on Adult, where theirs is the accuracy of a network; DPLT has no reproducible rules",
            _gan_curve,
            slow=True,
            claims=(
                Claim("a higher accuracy with an increase of epsilon", _improves("auc", 1)),
                Claim("the 4-way distance falls with epsilon", _improves("tvd4", -1)),
            ),
        ),
        Item(
            "table 5",
            "membership attack",
            f"its tables are {ABSENT}; ours on NLTCS: docs/design/vertigan.md 5",
        ),
        Item("figures of AVD", "4-way distance by epsilon", f"its tables are {ABSENT}; on Adult: table 4"),
        Item("figure of correlation", "heat maps without figures", f"its tables are {ABSENT}"),
        Item(
            "figure of images",
            "digits, letters and articles of three parties",
            "ours learns tables of codes, no images",
        ),
        Item("figure of sparsity", "4-way distance by share of gradients sent", "ours sends whole gradients"),
        Item(
            "VertiMRF's table",
            "3-way TVD of VertiGAN on NLTCS",
            "printed by VertiMRF's paper; its accounting does not hold for both owners together, and ours is charged what does",
            _gan,
        ),
    ),
)
