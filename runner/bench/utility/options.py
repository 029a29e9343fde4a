"""What the forms of `bench utility` share: their options, and how a mean is shown."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from mpc_protocols.process.installation import program
from runner.bench.output import files
from runner.commands.cli import Parser


def parser(
    description: str | None, data: str = "NAME.csv with NAME-domain.json", page: str | None = None
) -> argparse.ArgumentParser:
    """Options of one form: those that all have, `--data`, `--json` and `--replace`, and `--html` for a page."""
    made = Parser(
        prog=f"{program()} bench utility",
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--data", metavar="DIR", type=Path, required=True, help=data)
    files.declare(made, "per run", page)
    return made


def spread(values: Sequence[float], digits: int = 4) -> str:
    """The mean and, of several, its standard error."""
    if not values:
        return "-"
    mean = f"{statistics.fmean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} +- {statistics.stdev(values) / math.sqrt(len(values)):.{digits}f}"
