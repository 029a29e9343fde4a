"""The arguments of `check`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Look for everything that would end a run, and name all of it: the study and the tables that are on this
machine, by the rules of the private files that --private NAME=FILE names; and with --party this party's
private file, table (every row is read), certificates, ledger and port. Nothing is spent,
and nothing of the data is sent. With --connect it then meets the other parties as a run would, and
compares certificates, study and protocol version with each: have the same command typed at all of them, in
any order; each waits for the others until the study's connect_s is over. A run that is waiting is not
disturbed. The exit code is the first problem's.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "check",
        carried_out_by("check"),
        description=DESCRIPTION,
        examples="  cosynth check study.toml\n"
        "  cosynth check study.toml --private north=north.toml --private south=south.toml\n"
        "  cosynth check study.toml --party north --private north.toml --connect\n",
    )
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", help="this party, on this machine")
    parser.add_argument(
        "--private",
        metavar="FILE",
        action="append",
        default=[],
        help="its private settings; without --party NAME=FILE, once for each party here that has a private file",
    )
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="with --party: certificates that are not there yet are no problem",
    )
    parser.add_argument("--connect", action="store_true", help="also meet the others, who type the same")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
