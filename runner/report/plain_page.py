"""Pages beside the report's own, in its style: templates of this package, or of whoever brings their text."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from runner.version import VERSION


def source_text(name: str) -> str:
    """The text of one of the report's templates."""
    return resources.files("runner.report").joinpath("templates", name).read_text(encoding="utf-8")


def rendered(template: str, source: Callable[[str], str] = source_text, **content: Any) -> str:
    """The whole HTML text. source: of a template's text, by name."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(source),
    )
    return environment.get_template(template).render(
        style=Markup(source_text("report.css")), version=VERSION, **content
    )
