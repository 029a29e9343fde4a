"""Descriptor of `bench utility --federated`."""

from __future__ import annotations

from collections.abc import Sequence

from runner.bench.research.federated.command import command
from runner.bench.utility.comparison import Comparison


def _command(arguments: Sequence[str]) -> None:
    command(arguments)


COMPARISON = Comparison("federated", 0, "many clients, some of which arrive", _command)
