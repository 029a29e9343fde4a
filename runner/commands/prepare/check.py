"""`check STUDY`: every problem in one go, before the appointed hour."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.check.run import findings
from runner.commands import private_file_of_one, private_files_of_all
from runner.results.warnings import emphasised

if TYPE_CHECKING:
    pass


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
