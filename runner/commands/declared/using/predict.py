"""The arguments of `predict`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Predict the label of people with a model that two owners have trained (algorithm "florist"). Each owner
holds one half, so a prediction needs both: each types this command about itself, with the same list of
people; each waits for the other until the study's connect_s is over. Third parties take no part.

The owner of the label gets the probabilities, as CSV, and nobody else does. What each side learns: the
owner of the label receives an embedding of everybody on the list, from which features can be inferred,
and that the other owner holds a record of each. The other owner learns the list, and nothing else. There
is no privacy claim for its features: this stands in its ledger, and it refuses under a cap (50).
The list is a CSV file with the study's identifier columns. Whoever is on it must be held by the owner
without the label, in its data or in --data FILE; else it refuses the list (30), and nothing is sent.

Without --party, both halves are on this machine: DIR is the directory of a run of all parties here. If
the owner without the label had a private file in that run, name it with --private NAME=FILE: the ledger
that is charged must be the one in which the run stands.
"""
EXAMPLES = """\
  cosynth predict out study.toml --party south --private south.toml --people asked.csv --out found.csv
  cosynth predict out study.toml --party north --private north.toml --people asked.csv
  cosynth predict out study.toml --people asked.csv > found.csv
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "predict", carried_out_by("predict"), description=DESCRIPTION, examples=EXAMPLES
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of the finished run")
    parser.add_argument("study", metavar="STUDY", type=Path, help="its study file")
    parser.add_argument("-p", "--party", metavar="NAME", help="be this one owner")
    parser.add_argument(
        "--private", metavar="FILE", help="this owner's private settings; without --party NAME=FILE"
    )
    parser.add_argument(
        "--people", metavar="FILE", type=Path, required=True, help="a .csv file with the identifiers"
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        type=Path,
        help="records of the people, at the owner without the label (default: the data of the study)",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="at the owner of the label: a .csv file, readable by nobody else (default: standard output)",
    )
    may_replace(parser)
    parser.add_argument(
        "--insecure-key",
        action="store_true",
        help="go on although other users of this machine can read this party's key",
    )
