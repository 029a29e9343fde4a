"""An evaluation as a page, for one person only: the verdict, the figures, the strongest relations drawn both
ways."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from runner.report.compiled import template
from runner.report.drawings import charts
from runner.report.drawings.columns import real_and_synthetic
from runner.report.drawings.pair_chart import pair_chart
from runner.report.page import shares_of
from runner.report.plain_page import source_text
from runner.review.evaluation.judge import Evaluation, Table
from runner.review.evaluation.words import FAR, NOT_PRIVATE, rows_of, strongest, verdict, yardsticks
from synth.judgement.metrics import marginal

if TYPE_CHECKING:
    from runner.report.files import Run

MAX_PAIRS, MAX_HEAT, MAX_SHOWN = 6, 25, 6
"""Pictures of pairs; columns of the table of all; pictures of columns that are not folded away."""


def write_page(path: Path, run: Run, real: Table, found: Evaluation) -> None:
    """An HTML page, readable by its owner alone. Raises OSError."""
    pairs = _pairs(run, real, found)
    within = [of["chart"].inside[0] for of in pairs]
    text = template("evaluation.html.j2").render(
        style=Markup(source_text("report.css")),
        study=run.facts["study"],
        note=NOT_PRIVATE,
        found=found,
        verdict=verdict(found),
        yardsticks=yardsticks(found),
        far=FAR,
        pairs=pairs,
        inside=(sum(hits for hits, _ in within), sum(of for _, of in within)),
        heat=_heat(run, found),
        rows=rows_of(found),
        columns=real_and_synthetic(run, found.counts),
        shown=MAX_SHOWN,
    )
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        os.fchmod(file.fileno(), 0o600)  # also of a page that is replaced
        file.write(text)


def _pairs(run: Run, real: Table, found: Evaluation) -> list[dict[str, Any]]:
    """The strongest relations, of the real rows and of the table."""
    drawn, sure = [], shares_of(run)
    for pair in strongest(found)[:MAX_PAIRS]:
        if pair.carried is not None:
            counts = [
                (what, marginal(codes, run.domain, pair.columns).astype(np.float64))
                for what, codes in (("real rows", real), ("synthetic rows", run.codes))
            ]
            chart = pair_chart(run.domain, pair.columns, counts, found.label, sure)
            drawn.append({"judged": pair, "chart": chart})
    return drawn


def _heat(run: Run, found: Evaluation) -> list[tuple[str, list[Markup]]]:
    """In two shapes, Cramer's V of all pairs, of the real rows and of the table, of the columns with the
    strongest relations."""
    names = list(dict.fromkeys(name for pair in strongest(found) for name in pair.columns))[:MAX_HEAT]
    names = [name for name in run.domain.names if name in names]
    if len(names) < 2:
        return []
    place = {name: at for at, name in enumerate(names)}
    strengths = np.zeros((2, len(names), len(names)))
    for pair in found.relations:
        if all(name in place for name in pair.columns):
            one, two = (place[name] for name in pair.columns)
            strengths[:, one, two] = strengths[:, two, one] = pair.real, pair.table
    titles = ("Real rows", "Synthetic rows")
    return [
        (what, [charts.heat_map(names, of, f"{what}: Cramér's V", narrow=narrow) for narrow in (False, True)])
        for what, of in zip(titles, strengths, strict=True)
    ]
