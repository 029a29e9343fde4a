"""The arguments of `ledger`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, private_path
from runner.commands.listing import HELP

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Show the runs that this custodian's data has taken part in and what they spent, together and one by
one. rho adds up over runs, for one notion of what is protected: the cap's, else the first run's (or,
without a cap, the least under which all of them count). "counts" says how often a run's rho is in the
sum: under a person of up to 3 rows a run at unit "row" counts 9 times, under replace one at add-remove
4 times; "no": it says nothing about this notion, and no sum holds. epsilon is what the sum means at one
delta: --delta, the cap's, or the smallest that a run's study claims plus the deltas of announced sizes
(which count by rho or by their own epsilons, whichever is less; in a cap by rho); part of delta is left
for the samplers' finite precision. A run's claim is what its study promises to recipients; what it spent
is at the study's delta plus the run's own sizes, which only the other owners of an alignment saw. A run
that was stopped keeps what it had begun to release. Studies that were refused before anything was sent
are listed too: a refusal costs no epsilon, but tells the others that something did not fit.

Of several data sets each is one line, unless --all or --dataset asks for the runs.

The ledger is the private file's, else $COSYNTH_LEDGER, else cosynth/ledger.db under the user's data
directory.
"""
CHECKED = """\
Look whether the ledger's file is whole (SQLite's own check), which runs are open, and whether each data
set's account is within its cap, which --private names. Reads only. Exit code 30 for a damaged file, 50 for
a cap that is passed.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "ledger", help=HELP["ledger"], allow_abbrev=False, description="The custodian's privacy ledger."
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    show = command(
        inner,
        "show",
        carried_out_by("ledger"),
        help="runs and what they spent",
        description=DESCRIPTION,
        examples="  cosynth ledger show\n  cosynth ledger show --private north.toml\n",
    )
    show.add_argument("--dataset", metavar="NAME", help="this population only")
    show.add_argument(
        "--delta",
        metavar="D",
        type=float,
        help="the delta of the epsilon shown (default: the cap's, else the studies')",
    )
    show.add_argument("-a", "--all", action="store_true", help="every run of every data set, not a line each")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a JSON object")
    form.add_argument("--csv", action="store_true", help="a line for each run, as CSV")
    check = command(
        inner,
        "check",
        carried_out_by("ledger", "run_check"),
        help="whether the ledger is whole and every account within its cap",
        description=CHECKED,
        examples="  cosynth ledger check\n  cosynth ledger check --private north.toml\n",
    )
    for one in (show, check):
        one.add_argument(
            "--private",
            metavar="FILE",
            type=private_path,
            help="a private file, whose ledger and cap are meant",
        )
        one.add_argument("--ledger", metavar="FILE", type=Path, help="a ledger file")
