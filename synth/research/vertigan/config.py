"""The `[vertigan]` table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mpc_protocols.options import option
from synth.config import MAX_ROUNDS, AlgorithmConfig

OWN, BUCKETS = "own", "buckets"

MAX_ONE_HOT = 1 << 12
"""One-hot cells of one owner's columns: a critic has half as many squared numbers."""


@dataclass(frozen=True)
class VertiGanConfig(AlgorithmConfig):
    """The `[vertigan]` table of a study. rate: of an owner's rows, how many one step of its critic looks at."""

    rounds: int = option(600, "whole", "the generator is changed so often", low=1, high=MAX_ROUNDS)
    critic_steps: int = option(5, "whole", "steps of each owner's critic in a round", low=1, high=64)
    rate: float = option(0.025, "number", "share of an owner's rows that a critic's step looks at", below=1.0)
    clip: float = option(1.0, "number", "most that one row's gradient counts", below=1e6)
    sampling: str = option(
        OWN,
        "word",
        "each owner draws its batches itself, unseen (add-remove)",
        words=(OWN, BUCKETS),
        meaning='each owner draws its batches itself, unseen: add-remove only. Or `"buckets"`: by a public hash of '
        "the row, with much more noise",
    )
    synthetic_rows: int | None = option(
        None,
        "whole",
        "rows of the synthetic table; default: about as many as an owner has, known only with noise",
        fallback="about an owner's",
        meaning="rows of the table; public",
        low=1,
        high=1 << 32,
        example=10000,
    )

    def misfits(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """Columns that no critic can look at."""
        for name, size in sizes.items():
            if size > MAX_ONE_HOT:
                yield (
                    "rounds",
                    f'cannot train a critic of the column "{name}" ({size:,} values, at most {MAX_ONE_HOT:,}); give it fewer',
                )
