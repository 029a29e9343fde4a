"""Descriptor of `bench utility --vertical`."""

from __future__ import annotations

from collections.abc import Sequence

from runner.bench.research.vertical.command import compare
from runner.bench.utility.comparison import Comparison


def _command(arguments: Sequence[str]) -> None:
    compare(arguments)


COMPARISON = Comparison("vertical", 1, "columns of two owners", _command)
