"""How good a model is, from people's labels and scores: AUC and ACE of the table label x bin of the score.

Bins have equal widths of the probability and are public: edges at the scores' own quantiles would move many
people when one leaves. AUC: P(a positive's bin is above a negative's), ties half. ACE, the average
calibration error: bins are merged upwards until each holds a tenth of the people at least; the mean over
these of |mean probability - rate of label 1|, a bin's probability being its middle. Of noisy counts, negative
ones count as 0. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.research.florist.calibrate import BINS

MERGED = 10


@dataclass(frozen=True)
class Quality:
    """auc: 0.5 if only one label occurs. ace: 0 without anybody."""

    auc: float
    ace: float


def binned(probabilities: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(n,) the bin of each probability."""
    return np.minimum(probabilities * BINS, BINS - 1).astype(np.uint8)


def quality(counts: NDArray[Any]) -> Quality:
    """counts: (2, BINS) or flat, people by label and bin, maybe with noise."""
    people = np.maximum(counts.reshape(2, BINS).astype(np.float64), 0.0)
    negative, positive = people
    pairs = negative.sum() * positive.sum()
    below = np.cumsum(negative) - negative / 2
    auc = float((positive * below).sum() / pairs) if pairs else 0.5
    return Quality(auc, _calibration_error(people))


def _calibration_error(people: NDArray[np.float64]) -> float:
    middles, whole = (np.arange(BINS) + 0.5) / BINS, people.sum(axis=0)
    groups: list[list[int]] = [[]]
    held = 0.0
    for place in range(BINS):
        groups[-1].append(place)
        held += whole[place]
        if held * MERGED >= whole.sum() and place + 1 < BINS:
            groups.append([])
            held = 0.0
    if len(groups) > 1 and held * MERGED < whole.sum():  # what is left is too little for a bin of its own
        groups[-2:] = [groups[-2] + groups[-1]]
    errors = [
        abs(float((whole[group] @ middles[group] - people[1, group].sum()) / whole[group].sum()))
        for group in groups
        if whole[group].sum() > 0
    ]
    return float(np.mean(errors)) if errors else 0.0
