"""The arguments of `sample`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, whole_number

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Draw fresh rows from the model of a finished run, as CSV or, into a FILE.parquet, as Parquet. The
model is already released: rows cost no further budget, however many. Without --seed each call draws
other rows. With --where they are of one kind, drawn from the model's conditional distribution, as fine
as the columns' bins.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "sample",
        carried_out_by("sample", alone=True),
        description=DESCRIPTION,
        examples="  cosynth sample out --rows 100000 > more.csv\n"
        "  cosynth sample out --rows 1000 --seed 7 --out more.parquet\n"
        "  cosynth sample out -n 3000 --replicates 20 -o made.csv    # made.1.csv to made.20.csv\n"
        "  cosynth sample out --rows 1000 --out more                 # of linked tables: a folder\n"
        "  cosynth sample out -n 1e4 --where work=private --where age=30..40 -o some.csv\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument("-n", "--rows", metavar="N", type=whole_number, required=True, help="how many")
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="write a .csv or .parquet file (default: CSV on standard output)",
    )
    parser.add_argument(
        "--csv-safe",
        action="store_true",
        help="in CSV, an apostrophe before names and values that a spreadsheet would run as formulas",
    )
    parser.add_argument(
        "-w",
        "--where",
        metavar="COLUMN=VALUE",
        action="append",
        default=[],
        help="rows of this kind only: COLUMN=VALUE, COLUMN=LOW..HIGH, or COLUMN= for a missing value; a column's values add up",
    )
    parser.add_argument(
        "--replicates",
        metavar="M",
        type=whole_number,
        help="M tables as further releases would be, by which an estimate tells its error; numbered after --out",
    )
    parser.add_argument("--seed", metavar="S", type=whole_number, help="the same rows for the same seed")
    may_replace(parser)
