"""The arguments of `evaluate`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, private_path

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Judge the synthetic table of a finished run by real rows, on this machine: which relations between columns
it keeps, how far its marginals of one, two and three columns lie from the real ones, which pairs are
farthest, how well a model that was trained on it predicts real rows, and whether it holds more of them
than chance. Each figure stands beside that of a table whose columns have no relation, and of real rows
themselves, all compared with the same real rows. The first sentence sums it up.

NOT PRIVATE: what is printed is a function of the real rows and is charged to no budget. It is for whoever
holds these rows; do not publish it, and do not choose settings by it that a later run then uses. With
--private-score EPSILON one figure, and no other, is released with noise and charged to the ledger of
the private file: the mean distance of pairs of columns.

Of linked tables --real is a folder that holds one file of each, or is given once for each, as TABLE=FILE;
likewise --test. Judged are people with their numbers of children, children with their person, likeness of
a person's children, sums of their numbers over a person, and the distance to the nearest real person.

Rows are read as the study writes its columns; with --private FILE by [csv] and [harmonise] of that file,
as a run reads a custodian's table.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "evaluate",
        carried_out_by("evaluate"),
        description=DESCRIPTION,
        examples="  cosynth evaluate out --real people.csv\n"
        "  cosynth evaluate out --real people.csv --test held_out.csv --label income --html judged.html\n"
        "  cosynth evaluate out --real clinic.csv --private clinic.toml\n"
        "  cosynth evaluate out --real patients=patients.csv --real visits=visits.csv\n"
        "  cosynth evaluate out --real people.csv --private-score 0.2 --private north.toml\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument(
        "--real",
        metavar="FILE",
        action="append",
        required=True,
        help="CSV or Parquet: rows with all columns of the study, written as the study has them, or as --private says",
    )
    parser.add_argument(
        "--test",
        metavar="FILE",
        action="append",
        help="real rows that were not in the run; else one half judges the other",
    )
    parser.add_argument(
        "--label", metavar="COLUMN", help="predict this column by a model trained on the table"
    )
    parser.add_argument(
        "--private-score",
        metavar="EPSILON",
        type=float,
        help="instead of all this one score that may be told: differentially private, charged to your ledger",
    )
    parser.add_argument(
        "--private",
        metavar="FILE",
        type=private_path,
        help="a custodian's private file: how its rows are read; with --private-score also ledger, data set and cap",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page, for you alone")
    may_replace(parser, "--html")
