"""The arguments of `plan`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, whole_number

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Say what a run of the study will do, before anybody starts it: what is asked and what it costs in
privacy, rounds of messages, bytes, memory and time, and who learns what; and how good the table may
become: rows for each cell against noise, and whether relations between columns will be kept, which
is tried on invented tables, as is what would help. Rounds and bytes follow from public sizes; where
they depend on the number of rows, which nobody knows beforehand, --rows may give a guess (default:
the study's synthetic_rows, else about as many as the tables on this machine have, also those that
--private NAME=FILE names, else max_rows).

With --compare: what the study would cost by every backend, who must not collude with whom, on
what that rests, and what would have to change in the study. --delay-ms and --rate-mbit tell times
for a network of yours in place of a usual LAN and WAN; rounds and bytes are then those of parties
that are so far apart.
"""
EXAMPLES = """\
  cosynth plan study.toml
  cosynth plan study.toml --rows 50000 --json
  cosynth plan study.toml --compare --delay-ms 20 --rate-mbit 100
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "plan", carried_out_by("plan", alone=True), description=DESCRIPTION, examples=EXAMPLES
    )
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument(
        "-n",
        "--rows",
        metavar="N",
        type=whole_number,
        help="a guess at the number of rows of all custodians together; vertical: of each owner's list",
    )
    parser.add_argument(
        "-p", "--party", metavar="NAME", help="this party, whose private file --private then is"
    )
    parser.add_argument(
        "--private",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="a party's private file, which names its table; what follows from that is for this party's eyes only",
    )
    parser.add_argument(
        "--compare", action="store_true", help="by every backend: costs, who must not collude, what to change"
    )
    parser.add_argument(
        "--delay-ms", metavar="N", type=float, help="one-way delay of the network to plan for"
    )
    parser.add_argument("--rate-mbit", metavar="N", type=float, help="its rate into each party, Mbit/s")
    parser.add_argument("--json", action="store_true", help="a JSON object")
