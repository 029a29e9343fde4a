"""What an algorithm's own table may say, as far as several algorithms share it: size of the model, rows,
rounds, pruning.

Standard library only: studies are read with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mpc_protocols.options import Options, option

MAX_ROUNDS: Final = 1 << 16
ADAPTIVE: Final = "adaptive"
"""Of a number of rounds: as many as the released values make worth while."""
CELL_BYTES: Final = 8
"""Of one cell of a model."""


def rounds_option(*words: str, meaning: str = "") -> Any:
    """The key `rounds`."""
    return option(
        10, "whole", "select, measure, fit: so often", low=1, high=MAX_ROUNDS, words=words, meaning=meaning
    )


@dataclass(frozen=True)
class AlgorithmConfig(Options):
    """The table of an algorithm, whichever it is."""

    @property
    def synthetic_rows(self) -> int | None:
        """Rows of the synthetic table if the study fixes them; None: as many as the run finds, with noise."""
        return None

    @property
    def model_mb(self) -> float:
        """Most MiB of the graphical model; 0 without one."""
        return 0.0

    def misfits(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """(key, the rest of a sentence about it) for what does not go with the study's columns. sizes: values
        of each."""
        yield from ()


@dataclass(frozen=True)
class ModelConfig(AlgorithmConfig):
    """The table of an algorithm that fits a graphical model and samples a table from it. max_model_mb: MiB at
    8 bytes a cell."""

    max_model_mb: float = option(
        4.0,
        "number",
        "MiB; larger models fit better and take longer",
        below=1 << 20,
        meaning="MiB of the model at 8 bytes a cell; larger models fit better and take longer. A larger clique is "
        "never a candidate; a single column above it is an error (10)",
    )
    synthetic_rows: int | None = option(
        None,
        "whole",
        "default: about as many as there are rows, known only with noise",
        fallback="the noisy total",
        meaning="rows of the table; public",
        low=1,
        high=1 << 32,
        example=10000,
    )

    @property
    def model_mb(self) -> float:
        return self.max_model_mb

    def misfits(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """A single column beyond max_model_mb cannot be modelled; larger cliques merely never become
        candidates."""
        for name, size in sizes.items():
            if size > cells_within(self.max_model_mb):
                yield (
                    "max_model_mb",
                    f'= {self.max_model_mb:g} MiB is too small for the column "{name}" alone '
                    f"({size:,} values of {CELL_BYTES} bytes); raise it or give the column fewer bins",
                )


@dataclass(frozen=True)
class RoundConfig(ModelConfig):
    """The table of an algorithm in rounds: select a candidate, measure it, refit."""

    prune: bool = option(
        True, "flag", "false: also marginals that could only be chosen for their noise are candidates"
    )


def cells_within(max_model_mb: float) -> float:
    """The most cells a model of this size has."""
    return max_model_mb * 2**20 / CELL_BYTES
