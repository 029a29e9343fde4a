"""The commands of `python -m runner`, one file each. Importing them loads the standard library only."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
Run = Callable[[argparse.Namespace], None]


def command(
    commands: Commands, name: str, run: Run, *, help: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """Declare a command whose `--help` says what it is for and shows it in use."""
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog="examples:\n" + examples,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser
