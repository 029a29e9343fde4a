"""An audit as one page that loads nothing, in the report's style: what was claimed, what was seen, what would
have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from runner.review.audit.check import Verdict
from runner.review.audit.driver import Result
from runner.review.audit.output.drawings import draw_plot
from runner.review.audit.output.lines import SENTENCES, WORDS


def page(facts: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The whole HTML text. facts: as in audit.json."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_source),
    )
    plots = {
        result.name: {"drawing": draw_plot(result.finding.plot), "title": result.finding.plot.title}
        for result in results
        if result.finding.plot is not None
    }
    return environment.get_template("audit.html.j2").render(
        style=Markup(_source("report.css")),
        facts=facts,
        plots=plots,
        words={verdict.value: word for verdict, word in WORDS.items()},
        sentence=SENTENCES[Verdict(facts["verdict"])],
    )


def _source(name: str) -> str:
    return resources.files("runner.report").joinpath("templates", name).read_text(encoding="utf-8")
