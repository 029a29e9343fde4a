"""Tables and curves of federated runs: at a terminal, and as one self-contained page."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from markupsafe import Markup

from runner.bench.output.curves import HUES, Dot, Series, chart
from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.printed import printed
from runner.bench.research.federated.runs import VARIED, Point, Result
from runner.report.plain_page import rendered

Found = Mapping[tuple[str, Point], Sequence[Result]]
HEADINGS: Final = {
    "err": "mean L1 distance of the workload's marginals",
    "closure": "the same of all their subsets",
    "nll": "negative log-likelihood of real rows, nats (medians)",
    "auc": "AUC of predicting the label on real rows",
}
MIDDLE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {"nll": statistics.median}
ACROSS: Final = {
    "chance": "chance of being there",
    "rounds": "rounds",
    "epsilon": "epsilon",
    "skew": "skew of the label",
}
_WIDTH = 24


def values(results: Sequence[Result], metric: str) -> list[float]:
    """Of the runs that have it; CPU seconds as "cpu_s"."""
    if metric == "cpu_s":
        return [result.cpu_s for result in results]
    return [result.scores[metric] for result in results if metric in result.scores]


def cell(row: Row, point: Point, found: Found, metric: str) -> str:
    """The mean, the spread of one run in brackets, and the papers' figure where there is one."""
    results = found.get((row.text, point), ())
    of = values(results, metric)
    usual = (point.clients, point.chance, point.rounds) == (100, 0.1, 10)
    name = row.text.partition(":")[0]
    paper = printed(name, point.table, point.split, point.epsilon, metric) if usual else None
    if not of:
        return "-" if paper is None or not results else f"- / {paper:g}"
    text = f"{MIDDLE.get(metric, statistics.fmean)(of):.3f}"
    if len(of) > 1:
        text += f" ({statistics.stdev(of):.3f})"
    return text if paper is None else f"{text} / {paper:g}"


def metrics(found: Found) -> list[str]:
    """Those that some run has."""
    return [metric for metric in HEADINGS if any(values(results, metric) for results in found.values())]


def heading(point: Point) -> str:
    """Of a column."""
    return point.table if point.split == "own" else f"{point.table} {point.split}"


def conditions(point: Point, runs: int) -> str:
    """What all columns of a table have in common."""
    return (
        f"{point.clients} clients, chance {point.chance:g}, {point.rounds} rounds, epsilon {point.epsilon:g}, "
        f"delta {point.delta:g}, {runs} runs; mean (spread of a run) / printed by the paper"
    )


def tables(rows: Sequence[Row], base: Sequence[Point], found: Found) -> None:
    """Print a table for each metric."""
    width = max(len(row.text) for row in rows) + 2
    runs = max(map(len, found.values()))
    for metric in [*metrics(found), "cpu_s"]:
        print(f"\n{metric}, {HEADINGS.get(metric, 'CPU seconds of a run')}; {conditions(base[0], runs)}")
        print(" " * width + "".join(f"{heading(point):>{_WIDTH}}" for point in base))
        for row in rows:
            print(f"{row.text:{width}}" + "".join(f"{cell(row, p, found, metric):>{_WIDTH}}" for p in base))


def curves(rows: Sequence[Row], base: Sequence[Point], points: Sequence[Point], found: Found) -> None:
    """Print the error against everything of which several values were measured."""
    for column, name, line in _lines(base, points):
        print(f"\nerr of {heading(column)} against {ACROSS[name]}: {', '.join(f'{x:g}' for x, _ in line)}")
        for row in rows:
            print(f"  {row.text}: " + ", ".join(cell(row, point, found, "err") for _, point in line))


def page(
    path: Path, rows: Sequence[Row], base: Sequence[Point], points: Sequence[Point], found: Found
) -> None:
    """Write the page."""
    shown = [
        {
            "title": f"{metric}: {HEADINGS[metric]}",
            "rows": [
                (row.text, row.method.title, [cell(row, p, found, metric) for p in base]) for row in rows
            ],
        }
        for metric in metrics(found)
    ]
    drawings = [
        {"title": f"Error, {heading(column)}", "drawing": _chart(name, rows, line, found)}
        for column, name, line in _lines(base, points)
    ]
    text = rendered(
        "federated.html.j2",
        columns=[heading(point) for point in base],
        tables=shown,
        curves=drawings,
        conditions=conditions(base[0], max(map(len, found.values()))),
    )
    path.write_text(text, encoding="utf-8")


def _chart(name: str, rows: Sequence[Row], line: Sequence[tuple[float, Point]], found: Found) -> Markup:
    series = []
    for number, row in enumerate(rows[:HUES]):
        dots = [
            Dot(x, statistics.fmean(of), min(of), max(of))
            for x, point in line
            if (of := values(found.get((row.text, point), ()), "err"))
        ]
        if dots:
            series.append(Series(row.text, tuple(dots), number))
    return chart("Error", ACROSS[name], series, lambda x: f"{x:g}", lambda y: f"{y:.2g}")


def _lines(
    base: Sequence[Point], points: Sequence[Point]
) -> list[tuple[Point, str, list[tuple[float, Point]]]]:
    """(a column, what is varied, its values with their points) where there are several values."""
    found: list[tuple[Point, str, list[tuple[float, Point]]]] = []
    for column in base:
        for name in VARIED:
            line = [
                (float(getattr(point, name)), point)
                for point in points
                if point in column.varied(name, [getattr(point, name)])
            ]
            if len(line) > 1:
                found.append((column, name, sorted(line, key=lambda at: at[0])))
    skewed: dict[str, list[tuple[float, Point]]] = {}
    for point in base:
        kind, _, beta = (point.table if point.split == "own" else point.split).partition(":")
        if beta:
            skewed.setdefault(kind if point.split == "own" else f"{point.table} {kind}", []).append(
                (float(beta), point)
            )
    found += [
        (line[0][1], "skew", sorted(line, key=lambda at: at[0])) for line in skewed.values() if len(line) > 1
    ]
    return found
