"""`check STUDY`: every problem in one go, before the appointed hour."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command, private_file_of_one, private_files_of_all

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Look for everything that would end a run, and name all of it: the study and the tables that are on this
machine, by the rules of the private files that --private NAME=FILE names; and with --party this party's
private file, table (every row is read), certificates, ledger and port. Nothing is spent,
and nothing of the data is sent. With --connect it then meets the other parties as a run would, and
compares certificates, study and protocol version with each: have the same command typed at all of them, in
any order; each waits for the others until the study's connect_s is over. A run that is waiting is not
disturbed. The exit code is the first problem's.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "check",
        run,
        description=DESCRIPTION,
        examples="  cosynth check study.toml\n"
        "  cosynth check study.toml --private north=north.toml --private south=south.toml\n"
        "  cosynth check study.toml --party north --private north.toml --connect\n",
    )
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", help="this party, on this machine")
    parser.add_argument(
        "--private",
        metavar="FILE",
        action="append",
        default=[],
        help="its private settings; without --party NAME=FILE, once for each party here that has a private file",
    )
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="with --party: certificates that are not there yet are no problem",
    )
    parser.add_argument("--connect", action="store_true", help="also meet the others, who type the same")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.connect and arguments.party is None:
        raise UsageError("--connect belongs to one party: name it with --party NAME.")
    if arguments.rehearsal and arguments.party is None:
        raise UsageError("--rehearsal belongs to one party: name it with --party NAME.")
    if arguments.rehearsal and arguments.connect:
        raise UsageError("--connect meets the others with certificates; leave --rehearsal out.")
    alone = arguments.party is not None
    own = private_file_of_one(arguments.private, arguments.party) if alone else None
    here = {} if alone else private_files_of_all(arguments.private)
    from runner.check.run import findings
    from runner.results.warnings import emphasised

    errors = []
    for finding in findings(
        arguments.study,
        arguments.party,
        own,
        arguments.connect,
        here,
        without_certificates=arguments.rehearsal,
    ):
        kind = "problem" if finding.error else "note" if finding.note else "ok"
        if arguments.json:
            code = finding.error.exit_code if finding.error else 0
            print(json.dumps({"kind": kind, "text": finding.text, "code": code}), flush=True)
        else:
            print(emphasised(f"{kind:<8} {finding.text}", sys.stdout), flush=True)
        if finding.error:
            errors.append(finding.error)
    if errors and _one_place():
        raise SystemExit(errors[0].exit_code)  # the sentence stands there already
    if errors:
        raise errors[0]


def _one_place() -> bool:
    """Whether standard output and standard error end at the same terminal or file."""
    with suppress(OSError, ValueError):
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    return False
