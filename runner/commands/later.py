"""Commands of the contract that this version does not have yet; each says so and exits with 2."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError

if TYPE_CHECKING:
    from runner.commands import Commands

COMING = {"audit": "the security-evaluation harness"}


def add(commands: Commands) -> None:
    """Declare the commands; they take any arguments."""
    for name, purpose in COMING.items():
        # no prefix character: options that this version does not know are arguments like any other
        parser = commands.add_parser(
            name, help=f"{purpose} (not in this version yet)", add_help=False, prefix_chars="\0"
        )
        parser.add_argument("rest", nargs="*")
        parser.set_defaults(run=run, name=name)


def run(arguments: argparse.Namespace) -> None:
    """Refuse."""
    raise UsageError(
        f"`{arguments.name}` ({COMING[arguments.name]}) is not in this version yet; "
        "`python -m runner --help` lists what is."
    )
