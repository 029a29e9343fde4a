"""The arguments of `watch`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, whole_number

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Serve a page on the loopback address that follows the run in DIR, now and until Ctrl-C: phases, rounds, what
was selected, the budget spent, bytes, who is being waited for, and the graph of columns counted together as
it grows. It reads events.jsonl, which holds public facts only, and after the run run.json; it can be started
before the run in a directory that is there, beside it, or after it. The address that is printed holds a
random word: nobody else of this machine can open it.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "watch",
        carried_out_by("watch"),
        description=DESCRIPTION,
        examples="  cosynth watch out\n  cosynth run study.toml --out out --watch\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a run")
    parser.add_argument(
        "--port", metavar="N", type=whole_number, default=0, help="the port (default: any that is free)"
    )
