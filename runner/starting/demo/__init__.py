"""`cosynth demo`: the main job on a table that comes with Cosynth, no questions asked. Standard library only."""

from runner.starting.demo.running import COMPARISON, compare, comparison_of, demo
from runner.starting.demo.tables import CUSTODIANS, HEAD, coded, prepare, split, survey

__all__ = [
    "COMPARISON",
    "CUSTODIANS",
    "HEAD",
    "coded",
    "compare",
    "comparison_of",
    "demo",
    "prepare",
    "split",
    "survey",
]
