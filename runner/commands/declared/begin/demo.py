"""The arguments of `demo`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Three custodians hold 6,385 answers to a survey that people would not give by name, and make one
synthetic table of all of them on this machine. The people are made up: Cosynth made them from R. Fair's
survey of 1974 (epsilon 4), and they come with it. With --vertical two owners hold different columns of
overlapping people instead, and a third party computes with them. Ends by saying where the report is; an
earlier demo there is replaced. Takes less than a minute and needs no network.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "demo",
        carried_out_by("demo"),
        description=DESCRIPTION,
        examples="  cosynth demo\n  cosynth demo --vertical --out somewhere-else\n",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("cosynth-demo"),
        help="where the results go (default: %(default)s)",
    )
    told = parser.add_mutually_exclusive_group()
    told.add_argument(
        "-v", "--verbose", action="store_true", help="a line for every step, not for every batch"
    )
    told.add_argument("-q", "--quiet", action="store_true", help="nothing before the end")
    parser.add_argument(
        "--vertical", action="store_true", help="two owners hold different columns of overlapping people"
    )
