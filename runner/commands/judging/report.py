"""`report DIR`: build the report of a finished run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Build DIR/report.html again from the other files of a finished run: the same page, byte for byte, that
the run wrote. Everything in it is a function of what was released: no further budget is spent.
A demo's report keeps its comparison with the real rows, which only a demo has.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "report", run, description=DESCRIPTION, examples="  cosynth report out\n")
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.report import render
    from runner.starting.demo import comparison_of

    print(render(arguments.dir, comparison=comparison_of(arguments.dir)))
