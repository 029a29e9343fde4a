"""The page of `bench utility --florist`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from runner.report.plain_page import rendered, source_text

TEMPLATE = "page.html.j2"


def page(sections: Sequence[Mapping[str, Any]], name: str, seeds: int, settings: Mapping[str, int]) -> str:
    """The whole HTML text. sections: title, head and rows of text each; settings: epochs and batch."""
    return rendered(TEMPLATE, _source, sections=sections, name=name, seeds=seeds, **settings)


def _source(name: str) -> str:
    """The page's own, or one of the report's that it uses."""
    if name != TEMPLATE:
        return source_text(name)
    return resources.files("runner.bench.research.florist").joinpath(name).read_text(encoding="utf-8")
