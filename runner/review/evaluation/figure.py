"""What an evaluation says of one thing: three numbers, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Figure:
    """One comparison. apart: of independent columns. real: of real rows with real rows."""

    value: float
    apart: float | None
    real: float


def mean_of(figures: Sequence[Figure]) -> Figure:
    """Of several comparisons."""
    apart = [figure.apart for figure in figures if figure.apart is not None]
    return Figure(
        float(np.mean([figure.value for figure in figures])),
        float(np.mean(apart)) if apart else None,
        float(np.mean([figure.real for figure in figures])),
    )
