"""The pages of `bench utility --parts` and `--florist`: one self-contained file in the report's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from runner.bench.utility.parts import ErrorParts
from runner.version import VERSION

WORDS = {
    "whole": "error of the table",
    "sampling": "of it, drawing rows from the model",
    "selection": "taken off by picking without noise",
    "noise": "taken off by measuring without noise",
    "structure": "the model's error when nothing has noise",
    "two halves": "half of the rows against the other half",
}


def page(found: Sequence[ErrorParts], delta: float, seeds: int) -> str:
    """The whole HTML text."""
    most = max((max(parts.summary.values()) for parts in found), default=1.0)
    return _rendered(
        "utility.html.j2",
        sections=[
            {
                "title": f"{parts.row} on {parts.name}, epsilon {parts.epsilon:g}",
                "parts": [
                    {
                        "name": name,
                        "words": WORDS[name],
                        "value": f"{value:.4f}",
                        "width": round(100 * max(0.0, value) / most, 2),
                    }
                    for name, value in parts.summary.items()
                ],
            }
            for parts in found
        ],
        delta=f"{delta:g}",
        seeds=seeds,
    )


def training_page(
    sections: Sequence[Mapping[str, Any]], name: str, seeds: int, settings: Mapping[str, int]
) -> str:
    """Of FLORIST's tables. sections: title, head and rows of text each; settings: epochs and batch."""
    return _rendered("utility_florist.html.j2", sections=sections, name=name, seeds=seeds, **settings)


def _rendered(template: str, **content: Any) -> str:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_source),
    )
    return environment.get_template(template).render(
        style=Markup(_source("report.css")), version=VERSION, **content
    )


def _source(name: str) -> str:
    return resources.files("runner.report").joinpath("templates", name).read_text(encoding="utf-8")
