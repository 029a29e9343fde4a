"""`watch DIR`: a page on this machine that follows a run."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command, whole_number

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
        run,
        description=DESCRIPTION,
        examples="  cosynth watch out\n  cosynth run study.toml --out out --watch\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a run")
    parser.add_argument(
        "--port", metavar="N", type=whole_number, default=0, help="the port (default: any that is free)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.report.watch.server import watching

    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port must be from 0 to 65535, got {arguments.port}.")
    if not arguments.dir.is_dir():
        what = "is not a directory" if arguments.dir.exists() else "does not exist"
        raise UsageError(
            f"{arguments.dir} {what}; name the --out directory of a run, or make it and start the run."
        )
    with suppress(KeyboardInterrupt), watching(arguments.dir, arguments.port) as page:
        print(f"watching {arguments.dir}: {page.address} (Ctrl-C ends this page, not the run)", flush=True)
        while True:
            time.sleep(3600)
