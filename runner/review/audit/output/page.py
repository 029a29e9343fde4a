"""An audit as one page that loads nothing, in the report's style: what was claimed, what was seen, what would
have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.report.plain_page import rendered
from runner.review.audit.check import Verdict
from runner.review.audit.driver import Result
from runner.review.audit.output.drawings import draw_plot
from runner.review.audit.output.lines import SENTENCES, WORDS


def page(facts: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The whole HTML text. facts: as in audit.json."""
    plots = {
        result.name: {"drawing": draw_plot(result.finding.plot), "title": result.finding.plot.title}
        for result in results
        if result.finding.plot is not None
    }
    return rendered(
        "audit.html.j2",
        facts=facts,
        plots=plots,
        words={verdict.value: word for verdict, word in WORDS.items()},
        sentence=SENTENCES[Verdict(facts["verdict"])],
    )
