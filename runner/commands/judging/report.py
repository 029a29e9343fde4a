"""`report DIR`: build the report of a finished run again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.report import render
    from runner.starting.demo import comparison_of

    print(render(arguments.dir, comparison=comparison_of(arguments.dir)))
