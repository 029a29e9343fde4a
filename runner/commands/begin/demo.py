"""`demo`: the main job on a table that comes with Cosynth, no questions asked."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from runner.starting.demo import demo

if TYPE_CHECKING:
    pass


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    demo(
        arguments.out,
        arguments.vertical,
        "verbose" if arguments.verbose else "quiet" if arguments.quiet else "human",
    )
