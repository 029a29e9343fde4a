"""The arguments of `init`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Write DIR/study.toml, a study with every setting explained, and DIR/private.example.toml, an
example of a party's private settings. Nothing is overwritten and no data is made up.
With --vertical the study is of parties that hold different columns about overlapping people.
With --from FILE the columns of a custodian's table are looked at: DIR/domain.proposed.toml then holds
a proposal for each, ready to be appended to the study. What was read off rows is marked in it, for limits
and values taken from data tell of the data and must be confirmed by a person who knows what is public.
With --from NAME=FILE once for each custodian the tables are compared, and DIR/NAME.toml says how each of
them is read: names, codes, markers of missing values; where units seem to differ, the question stands
there. --codes COLUMN=FILE takes a column's values from a public
code book (.csv or .json) into the study. With --linked FILE once for the table of people and once for
each of what belongs to them (a column names the person), or to a row of theirs, the proposal is of
linked tables; code books of theirs are --codes TABLE.COLUMN=FILE. DIR/study.schema.json lets editors
complete the study's keys.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "init",
        carried_out_by("init"),
        description=DESCRIPTION,
        examples="  cosynth init mystudy\n  cosynth init mystudy --vertical\n"
        "  cosynth init mystudy --from people.csv --codes sex=sex_codes.csv\n"
        "  cosynth init mystudy --from north=north.csv --from south=export.csv\n"
        "  cosynth init mystudy --linked patients.csv --linked visits.csv\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="a directory, made if it does not exist")
    parser.add_argument("--vertical", action="store_true", help="different columns about overlapping people")
    parser.add_argument(
        "--from",
        dest="tables",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="a custodian's .csv, .tsv, .parquet or .xlsx; several are compared",
    )
    parser.add_argument(
        "--linked",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="a table of one custodian: that of people first, then those of what belongs to them",
    )
    parser.add_argument(
        "--key",
        metavar="COLUMN",
        help="with --linked: the column that names the person, of the tables that have it",
    )
    parser.add_argument(
        "--codes",
        metavar="COLUMN=FILE",
        action="append",
        default=[],
        help="a public code book of a column's values",
    )
