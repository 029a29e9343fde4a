"""Pictures of a run by themselves, for notebooks: the report's own drawings on a page that loads nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mpc_protocols.errors import UsageError
from runner.report import page
from runner.report.agreement import one_way
from runner.report.compiled import template
from runner.report.drawings.columns import measured
from runner.report.files import Run
from runner.report.number_format import percent
from runner.report.plain_page import source_text
from runner.study.declared.table import nearest

WIDTH = 760
"""Of the page, in pixels; two pictures stand side by side on it."""
HALF, HEAD, FOOT, GAP, BAR = 355, 30, 34, 26, 32


@dataclass(frozen=True)
class Figure:
    """A drawing, with what stands above it and the swatches below."""

    chart: Markup
    title: str = ""
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Part:
    """Drawings of one kind. several: they stand side by side."""

    title: str
    figures: tuple[Figure, ...]
    legend: tuple[tuple[str, str], ...] = ()
    several: bool = True

    @property
    def heights(self) -> list[float]:
        """Of each drawing with what stands above and below it, in pixels."""
        return [_height(figure, HALF if self.several else WIDTH) for figure in self.figures]

    @property
    def height(self) -> int:
        """About how tall it is, in pixels."""
        heights = self.heights
        rows = [max(heights[at : at + 2]) for at in range(0, len(heights), 2)] if self.several else heights
        return math.ceil(2 * HEAD + sum(row + GAP for row in rows))


def _height(figure: Figure, width: int) -> float:
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.chart)
    drawn = float(box[2]) * width / float(box[1]) if box else 0.0
    if 'class="budget"' in figure.chart:  # stretched: as tall as its style says
        drawn = BAR
    return drawn + (HEAD if figure.title else 0) + (FOOT if figure.legend else 0)


def _pairs(run: Run) -> Part:
    figures = tuple(
        Figure(
            pair["chart"].charts[0],
            f"{pair['chart'].shares} by {pair['chart'].lines}",
            f"Cramér’s V {pair['strength']:.2f}",  # noqa: RUF001 - as the report writes it
            pair["chart"].legend,
        )
        for pair in page.strongest_pairs(run)
    )
    return Part("The strongest relations", figures)


def _columns(run: Run) -> Part:
    drawn = [measured(run, one) for one in one_way(run)]
    legend = (
        ("synthetic", "synthetic rows"),
        ("measured dotkey", "noisy measurement, two standard errors either way"),
    )
    return Part("Columns", tuple(Figure(of["chart"], of["name"], of["kind"]) for of in drawn), legend)


def _graph(run: Run) -> Part:
    return Part("What was measured together", (Figure(page.measured_graph(run)["wide"]),), several=False)


def _budget(run: Run) -> Part:
    spent = page.spending(run)
    words = {"select": "selecting", "measure": "measuring", "total": "counting rows"}
    legend = tuple((kind, f"{words.get(kind, 'other')} {percent(share)}") for kind, share in spent["kinds"])
    return Part("The budget", (Figure(spent["bar"], legend=legend),), several=False)


KINDS: dict[str, Callable[[Run], Part]] = {
    "pairs": _pairs,
    "columns": _columns,
    "graph": _graph,
    "budget": _budget,
}


def pictures(run: Run, kinds: Sequence[str] = ()) -> tuple[str, tuple[Part, ...]]:
    """An HTML page of these kinds, default all, and what is on it. Raises `UsageError` for a kind there is
    not."""
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(
                f"There is no picture of {kind!r:.40}{nearest(str(kind), tuple(KINDS))}; there are: {', '.join(KINDS)}."
            )
    parts = tuple(part for kind in kinds or KINDS if (part := KINDS[kind](run)).figures)
    text = template("pictures.html.j2").render(
        study=run.facts["study"], style=Markup(source_text("report.css")), parts=parts
    )
    return text, parts


def height_of(parts: Sequence[Part]) -> int:
    """How tall a page of these is at `WIDTH`, in pixels."""
    return sum(part.height for part in parts) + HEAD
