"""The arguments of `tally`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, private_path

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Count one part of a custodian's table, for a table that is too large to be read by one machine in one go.
Whatever can run a command on each part can do it, on as many machines as there are. The files hold raw
counts: they are readable by their owner alone and stay at the custodian, whose private file then names
them instead of a table: data = { tallies = "counted/*.tally" }. The run adds them. Nothing is sent or
charged here; a part that does not fit the study is refused (30).
"""
EXAMPLES = """\
  cosynth tally study.toml --data part-07.parquet --out counted/part-07.tally
  cosynth tally study.toml --party north --private north.toml --data part-07.csv --out counted/part-07.tally
  cosynth tally study.toml --data part-07 --out counted/part-07.tally      # part-07/patients.csv, ...
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "tally", carried_out_by("tally"), description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", help="the custodian, to check that the study has it")
    parser.add_argument(
        "--private", metavar="FILE", type=private_path, help="its private settings, for [csv] and [harmonise]"
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        type=Path,
        required=True,
        help="the part: a .csv or .parquet file; of linked tables a folder of them, of the same persons",
    )
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="where the counts go")
    may_replace(parser, what="also a file that holds no counts")
