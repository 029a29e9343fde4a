"""An evaluation for people: lines, JSON, and a page. All of them begin with what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from runner.evaluation.judge import Evaluation, Figure

if TYPE_CHECKING:
    from runner.report.files import Run

NOT_PRIVATE = "Not private: these figures are functions of real rows. They are for whoever holds these; do not publish them."
WAYS = {1: "single columns", 2: "pairs of columns", 3: "sets of three columns"}


def rows_of(found: Evaluation) -> list[tuple[str, Figure, str]]:
    """The figures: what, the figure, which direction is good."""
    rows = [(f"distance of {WAYS[degree]}", figure, "lower") for degree, figure in found.distances.items()]
    if found.prediction is not None:
        rows.append((f"prediction of {found.label} (area under the curve)", found.prediction, "higher"))
    rows.append(("rows that equal a real one", found.copies, "not above real rows"))
    return rows


def lines(found: Evaluation) -> list[str]:
    """For a terminal."""
    rows = rows_of(found)
    width = max(len(what) for what, _, _ in rows)
    table = [f"{'':{width}}  {'synthetic':>9}  {'columns apart':>13}  {'real rows':>9}  good"]
    for what, figure, good in rows:
        apart = "" if figure.apart is None else f"{figure.apart:.4f}"
        table.append(f"{what:{width}}  {figure.value:9.4f}  {apart:>13}  {figure.real:9.4f}  {good}")
    worst = ", ".join(f"{' x '.join(pair)} {value:.3f}" for pair, value in found.worst[:5])
    return [
        NOT_PRIVATE,
        f"{found.rows[0]:,} synthetic rows against {found.rows[1]:,} real ones.",
        "",
        *table,
        "",
        *([f"Farthest pairs: {worst}."] if worst else []),
        "Columns apart: the same columns without any relation. Real rows: one half, or those held out, against the others.",
    ]


def to_json(found: Evaluation) -> str:
    """One object."""

    def figure(of: Figure) -> dict[str, Any]:
        return {"synthetic": of.value, "columns_apart": of.apart, "real_rows": of.real}

    return json.dumps(
        {
            "note": NOT_PRIVATE,
            "synthetic_rows": found.rows[0],
            "real_rows": found.rows[1],
            "distances": {str(degree): figure(of) for degree, of in found.distances.items()},
            "worst_pairs": [{"columns": list(pair), "distance": value} for pair, value in found.worst],
            **(
                {"prediction": {"label": found.label, **figure(found.prediction)}}
                if found.prediction is not None
                else {}
            ),
            "copies": figure(found.copies),
        },
        indent=1,
    )


def write_page(path: Path, run: Run, found: Evaluation) -> None:
    """An HTML page, readable by its owner alone. Raises OSError."""
    from runner.report.columns import real_and_synthetic
    from runner.report.page import source_text, template

    text = template("evaluation.html.j2").render(
        style=Markup(source_text("report.css")),
        study=run.facts["study"],
        note=NOT_PRIVATE,
        found=found,
        rows=rows_of(found),
        columns=real_and_synthetic(run, found.counts),
    )
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
