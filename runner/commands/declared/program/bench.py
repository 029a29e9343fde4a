"""The command `bench`, whose arguments depend on the benchmarks there are, which are found when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands import carried_out_by
from runner.commands.listing import HELP

if TYPE_CHECKING:
    from runner.commands import Commands


def add(commands: Commands) -> None:
    """Declare the command."""
    # without a prefix character options are arguments like any other, and left to the command's own parser
    command = commands.add_parser("bench", help=HELP["bench"], add_help=False, prefix_chars="\0")
    command.add_argument("rest", nargs="*")
    command.set_defaults(run=carried_out_by("bench"))
