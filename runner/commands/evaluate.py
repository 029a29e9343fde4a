"""`evaluate DIR --real FILE`: how good a finished run's table is, by real rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Judge the synthetic table of a finished run by real rows, on this machine: how far its marginals of one,
two and three columns lie from the real ones, which pairs are farthest, how well a model that was trained
on it predicts real rows, and whether it holds more of them than chance. Each figure stands beside that of
a table whose columns have no relation, and of real rows themselves.

NOT PRIVATE: what is printed is a function of the real rows and is charged to no budget. It is for whoever
holds these rows; do not publish it, and do not choose settings by it that a later run then uses.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "evaluate",
        run,
        help="judge a run's table by real rows (not private)",
        description=DESCRIPTION,
        examples="  python -m runner evaluate out --real people.csv\n"
        "  python -m runner evaluate out --real people.csv --test held_out.csv --label income --html judged.html\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument(
        "--real",
        metavar="FILE",
        type=Path,
        required=True,
        help="CSV or Parquet: rows with all columns of the study",
    )
    parser.add_argument(
        "--test",
        metavar="FILE",
        type=Path,
        help="real rows that were not in the run; else one half judges the other",
    )
    parser.add_argument(
        "--label", metavar="COLUMN", help="predict this column by a model trained on the table"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page, for you alone")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.evaluation.judge import judge, real_rows
    from runner.evaluation.words import lines, to_json, write_page
    from runner.report.files import load
    from runner.results.finished_run import open_run

    open_run(arguments.dir)  # its sentences name what is missing
    if arguments.html is not None and arguments.html.resolve().is_relative_to(arguments.dir.resolve()):
        raise UsageError(
            f"--html {arguments.html} lies in the run's directory, which is passed on; write the page elsewhere."
        )
    finished = load(arguments.dir)
    real = real_rows(arguments.real, finished.domain)
    held_out = None if arguments.test is None else real_rows(arguments.test, finished.domain)
    found = judge(finished, real, held_out, arguments.label)
    print(to_json(found) if arguments.json else "\n".join(lines(found)))
    if arguments.html is not None:
        try:
            write_page(arguments.html, finished, found)
        except OSError as error:
            raise UsageError(f"--html {arguments.html} cannot be written ({error.strerror}).") from None
