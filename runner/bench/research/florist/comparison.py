"""Descriptor of `bench utility --florist`."""

from __future__ import annotations

from collections.abc import Sequence

from runner.bench.research.florist.command import measure
from runner.bench.utility.comparison import Comparison


def _command(arguments: Sequence[str]) -> None:
    measure(arguments)


COMPARISON = Comparison("florist", 2, "a model instead of a table", _command)
