"""The arguments of `run`, and its help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands
    from runner.launch import ahead
else:  # who asks for help waits for nothing
    ahead = Later("runner.launch.ahead")

DESCRIPTION = """\
Run a study. Without --party, every party is a process of this machine: a rehearsal, or one
organisation's own experiment; it protects nobody from this machine. With --party, this process
is that one party: start one such command at each organisation, in any order; each waits for the
others until the study's connect_s is over.

Results in DIR, the same at every party: synthetic.csv, report.html, run.json, measurements.json,
model.npz; and this party's own account of the run: events.jsonl, cosynth.log and a journal of what
was released. What nobody else may know, such as the number of rows read, stands in private.log only.
DIR must be new or empty: a finished or interrupted run there stays, unless --replace says that this
one is to take its place. Even then its files are replaced only when this one has succeeded; until then,
and if it fails, this one's events and log are DIR/unfinished.jsonl and .log. With --resume a run that was
interrupted goes on from its last opened release, if all parties say so: nothing is spent twice. One that is
finished in DIR is left as it is, and only gives the others what they lack; one that had released nothing
starts anew, and says so. With all parties here a DIR in which no run was ever started is refused: only its
name can be wrong. One party of several is told in a line: the others may know of the run, and it may have
died before it began.

Parties without a table only compute; a line says who they are. With all parties here a run in which the
study names no table, and --private one party's alone, is refused: its budget would be spent on that table,
and --alone says that this is meant.
"""
EXAMPLES = """\
  cosynth run study.toml --out out
  cosynth run study.toml --party north --private north.toml --out out
  cosynth run study.toml --json | grep '"selected"'
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    carried_out = carried_out_by("run", around=lambda arguments: ahead.importing(arguments))
    parser = command(commands, "run", carried_out, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        type=Path,
        help="where the results go (default: the private file's out, else ./out, with --party ./out/NAME)",
    )
    parser.add_argument("-p", "--party", metavar="NAME", help="be this one party")
    parser.add_argument(
        "--private",
        metavar="FILE",
        action="append",
        default=[],
        help="this party's private settings: data, keys, ledger; with all parties here NAME=FILE, once for each that has one",
    )
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument(
        "--replace", action="store_true", help="take the place of an earlier run in DIR, if this one succeeds"
    )
    earlier.add_argument(
        "--resume",
        action="store_true",
        help="go on with an interrupted run in DIR, from its last opened release",
    )
    parser.add_argument(
        "--allow-retry",
        action="store_true",
        help="align records once more although the last alignments with the same party were aborted",
    )
    parser.add_argument(
        "--insecure-key",
        action="store_true",
        help="go on although other users of this machine can read this party's key",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="with all parties here: go on although only one of them has a table, and its budget is spent on that alone",
    )
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--json", action="store_true", help="events as JSON lines instead of text")
    told.add_argument(
        "-v", "--verbose", action="store_true", help="a line for every step, not for every batch"
    )
    told.add_argument(
        "-q", "--quiet", action="store_true", help="nothing but warnings and the final sentence"
    )
    parser.add_argument(
        "--watch", action="store_true", help="serve a page on this machine that follows the run"
    )
    parser.add_argument(
        "--health",
        metavar="FILE",
        type=Path,
        help="keep a file that says how the run goes, for operators: JSON, or metrics for Prometheus in a FILE.prom; "
        "systemd is told in any case, if it has started this",
    )
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(way_in=None)  # no option: given by programs that embed this one
