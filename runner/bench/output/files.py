"""The files that a benchmark writes, `--json` and `--html`: one that is there gives way only to --replace, which is asked
for before anything is measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mpc_protocols.errors import UsageError
from runner.commands import may_replace
from runner.failures import reason
from runner.results.outdir import spare, writable


def declare(parser: argparse.ArgumentParser, line: str, page: str | None = None) -> None:
    """Declare --json, --html if there is a page, and --replace. line: of what a line is; page: what is on it."""
    parser.add_argument("--json", metavar="FILE", type=Path, help=f"a JSON line {line}")
    if page is not None:
        parser.add_argument("--html", metavar="FILE", type=Path, help=page)
    may_replace(parser, "--json" if page is None else "--json and --html")


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[IO[str]]:
    """Where lines go: the file of --json, emptied, or nowhere. Raises `UsageError` for a file of either option that
    is not to be written over or cannot be written."""
    html: Path | None = vars(options).get("html")
    if options.json is not None:
        spare(options.json, "--json", replace=options.replace, streamed=True)
    if html is not None:
        spare(html, "--html", replace=options.replace)
        writable(html, "--html")
    try:
        lines = (options.json or Path(os.devnull)).open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--json {options.json} cannot be written ({reason(error)}); name another file."
        ) from None
    with lines:
        yield lines
