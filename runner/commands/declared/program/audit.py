"""The arguments of `audit`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, whole_number

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Attack this build and say what was found: what parties receive, what travels, what noise there is, what
is charged, what certificates are let in. Each check states a claim, its evidence, and what it would have
seen. A pass is no proof.

Audited are the demo's study and data, or with --study another study's parameters, on invented rows; no
private data is read. The parties compute on this machine.
"""
EXAMPLES = """\
  cosynth audit --quick                      the cheap checks of all groups
  cosynth audit --study study.toml --out audit
  cosynth audit V T --backend shamir --backend pair
  cosynth audit --only A.events --json audit.json
  cosynth audit --target study.toml          attack parties that wait on this machine, from outside
  cosynth audit --mutations                  break the build on purpose: each fault must be found
  cosynth audit --deep --only C.faults --part 2/6
                                                      a sixth of the 360 faults of whole processes

exit codes of an audit: 0 passes, 1 a violation, 2 usage, 3 a check decides nothing, 4 a check could not
be carried out
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "audit", carried_out_by("audit"), description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="letters of groups (default: all)")
    parser.add_argument("--list", action="store_true", help="say what there is to check")
    parser.add_argument(
        "--study", metavar="FILE", type=Path, help="audit this study's parameters (default: the demo's)"
    )
    parser.add_argument(
        "--target",
        metavar="STUDY",
        type=Path,
        help="instead, attack this study's parties from outside: those that wait on this machine for others to come",
    )
    parser.add_argument(
        "--backend",
        metavar="NAME",
        action="append",
        default=[],
        help="this backend; may be repeated (default: all)",
    )
    parser.add_argument(
        "--only", metavar="CHECK", action="append", default=[], help="this check; may be repeated"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="the cheap checks, some minutes")
    length.add_argument("--deep", action="store_true", help="all checks, with larger samples")
    parser.add_argument(
        "--mutations",
        action="store_true",
        help="instead, break the build on purpose in all ways, and see each fault found; with --deep, with 20 seeds each",
    )
    parser.add_argument(
        "--mutation",
        metavar="NAME",
        action="append",
        default=[],
        help="the same with this broken build; may be repeated",
    )
    parser.add_argument(
        "--part",
        metavar="K/N",
        default="1/1",
        help="of campaigns of many cases, the K-th of N parts, such as 2/5",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=whole_number,
        help="checks, or broken builds, at a time (default: as many as there are cores)",
    )
    parser.add_argument(
        "--seed", metavar="TEXT", help="repeat an audit's choices (default: a fresh one, printed)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="the findings for machines")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write audit.json and audit.html here")
    may_replace(parser, "--json and --out", "files there")
