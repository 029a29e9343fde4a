"""`query DIR COLUMN...`: a marginal of a finished run's model."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.study.table import nearest

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Print how many rows the model of a finished run expects for every combination of these columns'
values, and their share of all rows. The counts are estimates from released, noisy values: asking
costs no further budget, whatever the columns.
"""
MAX_LISTED_CELLS = 1 << 22
Row = tuple[tuple[str, ...], float, float]


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "query",
        run,
        help="a marginal from a finished run, without further budget",
        description=DESCRIPTION,
        examples="  python -m runner query out age income\n"
        "  python -m runner query out age income --csv > counts.csv\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument("columns", metavar="COLUMN", nargs="+", help="one or more columns of the study")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a JSON object")
    form.add_argument("--csv", action="store_true", help="CSV")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.results.finished_run import open_run

    finished = open_run(arguments.dir)
    columns, domain = tuple(arguments.columns), finished.domain
    for name in columns:
        if name not in domain:
            raise UsageError(
                f"{arguments.dir} has no column {name}{nearest(name, domain.names)}; "
                f"its columns: {', '.join(domain.names)}."
            )
    if len(set(columns)) != len(columns):
        raise UsageError("A column is named twice; name each once.")
    if (cells := domain.cells(columns)) > MAX_LISTED_CELLS:
        raise UsageError(
            f"{' x '.join(columns)} has {cells:,} cells; at most {MAX_LISTED_CELLS:,} can be listed: name fewer columns."
        )
    counts = finished.model.marginal(columns).tolist()
    total = finished.model.total or 1.0
    labels = itertools.product(
        *([domain[name].label(code) for code in range(domain[name].size)] for name in columns)
    )
    rows = [(label, count, count / total) for label, count in zip(labels, counts, strict=True)]
    if arguments.json:
        print(
            json.dumps(
                {
                    "columns": columns,
                    "total": finished.model.total,
                    "cells": [
                        {"values": values, "count": round(count, 3), "share": round(share, 6)}
                        for values, count, share in rows
                    ],
                }
            )
        )
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([*columns, "count", "share"])
        writer.writerows([*values, f"{count:.3f}", f"{share:.6f}"] for values, count, share in rows)
    else:
        _print(columns, rows, finished.model.total)
        if len(columns) > 1 and not any(set(columns) <= set(clique) for clique in finished.model.cliques):
            print(
                f"{' x '.join(columns)} was not measured together: the relation shown follows from other measurements alone"
            )


def _print(columns: Sequence[str], rows: Sequence[Row], total: float) -> None:
    shown = [(*values, f"{count:,.0f}", f"{100 * share:.1f} %") for values, count, share in rows]
    header = (*columns, "rows (estimate)", "share")
    widths = [max(len(line[i]) for line in [header, *shown]) for i in range(len(header))]
    for line in [header, *shown]:
        cells = [
            text.rjust(width) if i >= len(columns) else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print(f"of about {total:,.0f} rows; estimated from noisy counts that are already released")
