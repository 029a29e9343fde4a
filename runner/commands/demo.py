"""`demo`: the main job on real data that ships with a dependency, no questions asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Three custodians share out 6,366 answers to a survey that people would not have given by name
(R. Fair's, from statsmodels), and make one synthetic table of all of them on this machine. With
--vertical two owners hold different columns of overlapping people instead, and a third party computes
with them. Ends by saying where the report is; an earlier demo there is replaced. Takes less than a
minute and needs no network.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "demo",
        run,
        help="see it work: real data, three parties, this machine",
        description=DESCRIPTION,
        examples="  python -m runner demo\n  python -m runner demo --vertical --out somewhere-else\n",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("cosynth-demo"),
        help="where the results go (default: %(default)s)",
    )
    parser.add_argument(
        "--vertical", action="store_true", help="two owners hold different columns of overlapping people"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.demo import demo

    demo(arguments.out, arguments.vertical)
