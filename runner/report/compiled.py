"""The report's own templates, compiled: 0.15 s of CPU, which a process that is forked from one that has paid for it
does without (`runner.launch.fork_server_process`)."""

from __future__ import annotations

from functools import cache

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from mpc_protocols.process.foreign_text import printable
from runner.report import number_format
from runner.report.plain_page import source_text


class Kept(jinja2.BytecodeCache):
    """What Jinja has made of templates, by its own keys: `codes` may be handed from one process to another of
    this program. Jinja looks whether they are of this template, and of its own version and Python's."""

    def __init__(self) -> None:
        self.codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """See `jinja2.BytecodeCache`."""
        if (code := self.codes.get(bucket.key)) is not None:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """See `jinja2.BytecodeCache`."""
        self.codes[bucket.key] = bucket.bytecode_to_string()


KEPT = Kept()


@cache
def template(name: str = "report.html.j2") -> jinja2.Template:
    """The page without its figures, compiled."""
    environment = jinja2.Environment(
        autoescape=True,
        finalize=lambda value: (
            printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(source_text),
        bytecode_cache=KEPT,
    )
    environment.filters.update(
        whole=number_format.whole,
        plain=number_format.plain,
        bound=number_format.bound,
        percent=number_format.percent,
        size=number_format.size,
        duration=number_format.duration,
        moment=number_format.moment,
        spelled=number_format.spelled,
    )
    return environment.get_template(name)
