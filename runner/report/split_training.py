"""The report of a run that trained a model: what each side can read off comes first, figures after it.

Made from run.json alone. Autoescaping is on for every value; the page loads nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from runner.report.number_format import listed, plain
from runner.report.words.statement import statement
from synth.algorithm import ALGORITHMS

KEY = "model"
"""Of run.json, where there is a model instead of a table."""


def page(facts: Mapping[str, Any], style: str, template: Any) -> str:
    """The whole HTML text. template: the compiled page of a training. Raises KeyError or TypeError for
    another run's facts."""
    model, algorithm = facts[KEY], ALGORITHMS.get(facts["algorithm"])
    said = statement(facts)
    text: str = template.render(
        style=Markup(style),
        facts=facts,
        privacy=facts["privacy"],
        model=model,
        algorithm=facts["algorithm"] if algorithm is None else algorithm.title,
        instead=None if algorithm is None else _instead(facts),
        first=first_paragraph(facts),
        warnings=said.warnings,
        unit=said.unit,
        adjacency=said.adjacency,
        evaluation=facts["evaluation"],
        figures=_figures(facts["evaluation"]),
        events=facts["privacy"]["events"],
    )
    return text


def first_paragraph(facts: Mapping[str, Any]) -> str:
    """The claim, then what each side can read off."""
    exposes = listed([f"{who} {what}" for who, what in facts["exposes"]])
    return f"{facts['claim']} Beyond that: {exposes}."


def _instead(facts: Mapping[str, Any]) -> str:
    return (
        "Who wants a model without these exposures aligns the same records, makes a synthetic table with one of the algorithms "
        "whose claim is (epsilon, delta), and trains any model on the table."
    )


def _figures(evaluation: Mapping[str, Any]) -> list[tuple[str, str]]:
    words = {"auc": "area under the ROC curve", "ace": "average calibration error"}
    return [(words[name], plain(evaluation[name], 3)) for name in words if name in evaluation]
