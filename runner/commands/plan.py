"""`plan STUDY`: what will happen: rounds, bytes, memory, time, epsilon; who learns what."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.study import load

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Say what a run of the study will do, before anybody starts it: what is asked and what it costs in
privacy, rounds of messages, bytes, memory and time, and who learns what. Rounds and bytes follow
from public sizes; where they depend on the number of rows, which nobody knows beforehand, --rows
may give a guess (default: the study's synthetic_rows, else max_rows).
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "plan",
        run,
        help="what a run will do and cost; who learns what",
        description=DESCRIPTION,
        examples="  python -m runner plan study.toml\n  python -m runner plan study.toml --rows 50000 --json\n",
    )
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument(
        "--rows", metavar="N", type=int, help="a guess at the number of rows of all custodians together"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.rows is not None and arguments.rows < 1:
        raise UsageError(f"--rows must be at least 1, got {arguments.rows}.")
    study = load(arguments.study)
    from runner.forecast import forecast, words

    expected = forecast(study, arguments.rows)
    print(json.dumps(expected.to_json()) if arguments.json else words(study, expected))
