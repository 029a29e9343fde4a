"""`ids --normalise RULE VALUE...`: what a rule of `[alignment] normalise` makes of identifiers, before two
owners rely on it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Try a rule of [alignment] normalise: how each value is written before owners compare identifiers, or that it
is refused (missing, a placeholder, not what the rule reads). Two values are one person to the study if they
give the same line. Nothing is sent or kept; the values are arguments of a command, which your shell may
remember, so invent some.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "ids",
        run,
        description=DESCRIPTION,
        examples='  cosynth ids --normalise phone:FR "06 12 34 56 78" +33612345678\n'
        '  cosynth ids --normalise name "Ann  SMITH"\n',
    )
    parser.add_argument(
        "--normalise", metavar="RULE", required=True, help="text, exact, name, email, date or phone:CC"
    )
    parser.add_argument("values", metavar="VALUE", nargs="+", help="identifiers as a table has them")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from mpc_protocols.psu.identifiers.normalise import field_of

    for value in arguments.values:
        try:
            canonical = field_of(value, arguments.normalise)
        except StudyInvalid as error:
            raise UsageError(f"--normalise {arguments.normalise}: {error.sentence}") from None
        text = None if canonical is None else canonical.decode("utf-8")
        if arguments.json:
            print(json.dumps({"given": value, "identifier": text}), flush=True)
        else:
            print(f"{value} -> {'refused' if text is None else text}", flush=True)
