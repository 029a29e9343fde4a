"""`report DIR`: build the report of a finished run again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from runner.report import render
from runner.starting.demo import comparison_of

if TYPE_CHECKING:
    pass


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    print(render(arguments.dir, comparison=comparison_of(arguments.dir)))
