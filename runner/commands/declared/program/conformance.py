"""The arguments of `conformance`, and its help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

KINDS = ("algorithm", "backend", "alignment")
DESCRIPTION = """\
Run the conformance suite of an algorithm, a backend or an alignment method: ours, or one that another
installed distribution adds (docs/howto/add-an-algorithm.md 7). Everything runs in this process on
invented tables. A line for each check; exit 1 if one fails, which does not end the others.
"""
EXAMPLES = """\
  cosynth conformance algorithm kway
  cosynth conformance backend replicated --only noise
  cosynth conformance alignment dh2 --list
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "conformance", carried_out_by("conformance"), description=DESCRIPTION, examples=EXAMPLES
    )
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=", ".join(KINDS))
    parser.add_argument("name", metavar="NAME", help="its word in the study file")
    parser.add_argument("--only", metavar="TEXT", default="", help="checks whose name holds this text")
    parser.add_argument("--list", action="store_true", help="the names of the checks; run none")
