"""The arguments of `query`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Print how many rows the model of a finished run expects for every combination of these columns'
values, and their share of all rows. The counts are estimates from released, noisy values: asking
costs no further budget, whatever the columns. Of columns that were counted together it says the
standard error of a count; of others, that they were not.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "query",
        carried_out_by("query"),
        description=DESCRIPTION,
        examples="  cosynth query out age income\n  cosynth query out age income --csv > counts.csv\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument("columns", metavar="COLUMN", nargs="+", help="one or more columns of the study")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a JSON object")
    form.add_argument("--csv", action="store_true", help="CSV")
    parser.add_argument(
        "--csv-safe",
        action="store_true",
        help="CSV with an apostrophe before names and values that a spreadsheet would run as formulas",
    )
