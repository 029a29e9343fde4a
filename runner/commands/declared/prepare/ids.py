"""The arguments of `ids`, and its help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

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
        carried_out_by("ids"),
        description=DESCRIPTION,
        examples='  cosynth ids --normalise phone:FR "06 12 34 56 78" +33612345678\n'
        '  cosynth ids --normalise name "Ann  SMITH"\n',
    )
    parser.add_argument(
        "--normalise", metavar="RULE", required=True, help="text, exact, name, email, date or phone:CC"
    )
    parser.add_argument("values", metavar="VALUE", nargs="+", help="identifiers as a table has them")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
