"""What `bench utility --NAME` runs in place of its own table, and how one is found: NAME/comparison.py,
holding COMPARISON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpc_protocols.registry import Registry


@dataclass(frozen=True)
class Comparison:
    """name: of the flag, without its dashes. summary: for the help, a few words. command: measures and
    prints, given what follows `bench utility`."""

    name: str
    rank: int
    summary: str
    command: Callable[[Sequence[str]], None]

    @property
    def flag(self) -> str:
        """As it is typed."""
        return f"--{self.name}"


COMPARISONS: Registry[Comparison] = Registry(
    "runner.bench.utility", "comparison", Comparison, research="runner.bench.research"
)
"""All of them, by name."""
