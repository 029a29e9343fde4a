"""A finished run as a notebook shows it: what it is, what it promises, what it rests on. Every value is text,
never markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from runner.results.warnings import texts_of

if TYPE_CHECKING:
    from runner.api.run import Run

MAX_LISTED = 12
_STYLE = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def card(run: Run) -> str:
    """The HTML of `Run._repr_html_`: a table that needs no style sheet and loads nothing."""
    facts = run.summary
    lines = Markup("").join(
        Markup('<tr><th style="{}">{}</th><td style="{}">{}</td></tr>').format(_STYLE, what, _STYLE, value)
        for what, value in _lines(facts)
    )
    head = Markup("<b>{}</b>: {:,} synthetic rows, {} columns").format(
        facts["study"], facts["rows"], len(facts["columns"])
    )
    return str(Markup("<div>{}<table>{}</table><p>{}</p></div>").format(head, lines, escape(run.report)))


def _lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    privacy = facts["privacy"]
    selected = [" x ".join(clique) for clique in facts["selected"]]
    more = f", and {len(selected) - MAX_LISTED} more" if len(selected) > MAX_LISTED else ""
    return [
        (
            "promise",
            f"epsilon {privacy['epsilon']:g}, delta {privacy['delta']:g}, {privacy['adjacency']}; unit: {privacy['unit']}",
        ),
        ("computed", f"{facts['algorithm']} on {facts['backend']}, {facts['deployment']}"),
        ("claim", str(facts["claim"])),
        *([("relations", str(facts["relations"]["sentence"]))] if "relations" in facts else []),
        *[("warning", text) for text in texts_of(facts)],
        *([("counted together", ", ".join(selected[:MAX_LISTED]) + more)] if selected else []),
    ]
