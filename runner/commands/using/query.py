"""`query DIR COLUMN...`: a marginal of a finished run's model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from mpc_protocols.process.foreign_text import for_stream, printable
from runner.report.files import measurements_of
from runner.results.finished_run import open_run
from runner.results.query import ask
from runner.results.table.csv_fields import row_writer
from runner.results.table.formulas import harmless
from runner.results.warnings import of_columns, tell

if TYPE_CHECKING:
    from runner.results.query import Answer

Row = tuple[tuple[str, ...], float, float]


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    finished = open_run(arguments.dir)
    measurements = measurements_of(arguments.dir, finished.domain)
    answer = ask(finished, measurements, arguments.columns, str(arguments.dir))
    rows = list(zip(answer.values, answer.counts, answer.shares, strict=True))
    if arguments.json:
        print(
            json.dumps(
                {
                    "columns": answer.columns,
                    "total": answer.total,
                    "basis": answer.basis,
                    "standard_error": answer.standard_error,
                    "cells": [
                        {
                            "values": values,
                            "count": round(count, 3),
                            "share": round(share, 6),
                            "interval": answer.interval(count),
                        }
                        for values, count, share in rows
                    ],
                }
            )
        )
    elif arguments.csv or arguments.csv_safe:
        kept = harmless if arguments.csv_safe else str
        error = "" if answer.standard_error is None else f"{answer.standard_error:.3f}"
        text = StringIO()
        writer = row_writer(text)
        writer.writerow([*map(kept, answer.columns), "count", "share", "standard_error"])
        writer.writerows(
            [*map(kept, values), f"{count:.3f}", f"{share:.6f}", error] for values, count, share in rows
        )
        sys.stdout.write(for_stream(text.getvalue(), sys.stdout))
    else:
        _print(answer, rows)
    tell(of_columns(finished.facts, answer.columns))


def _interval_text(interval: tuple[float, float] | None) -> tuple[str, ...]:
    return () if interval is None else (f"{interval[0]:,.0f} to {interval[1]:,.0f}",)


def _print(answer: Answer, rows: Sequence[Row]) -> None:
    columns = tuple(map(printable, answer.columns))
    told = [
        (
            *map(printable, values),
            f"{count:,.0f}",
            *_interval_text(answer.interval(count)),
            f"{100 * share:.1f} %",
        )
        for values, count, share in rows
    ]
    interval = () if answer.standard_error is None else ("95 % interval",)
    header = (*columns, "rows (estimate)", *interval, "share")
    widths = [max(len(line[i]) for line in [header, *told]) for i in range(len(header))]
    for line in [header, *told]:
        cells = [
            text.rjust(width) if i >= len(columns) else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print(f"of about {answer.total:,.0f} rows; estimated from noisy counts that are already released")
    names = " x ".join(columns)
    if answer.standard_error is not None:
        print(
            f"standard error of a count, by the noise: {answer.standard_error:,.3g} rows; so are the intervals"
        )
    elif answer.basis == "measured over bins":
        print(f"{names} was measured over bins only: within a bin the counts follow from other measurements")
    elif answer.basis == "not measured together":
        print(f"{names} was not measured together: the relation shown follows from other measurements alone")
