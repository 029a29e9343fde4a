"""Which relations between columns a result carries, of those that the release can see: a verdict from
released values only.

For each pair of columns that some measurement tells of (`synth.judgement.dependence.pairs_of`), with released
counts y, noise variance v and residual r = y - (row sums)(column sums)/N:

    seen       the score of its measurements (`dependence.score`) is beyond what noise and drawing give one of all the
               pairs in ten results
    carried    ||r of the model's answer|| / sqrt(||r||^2 - what noise alone adds), at most 1, of the clearest of its measurements
    kept       seen, and at least half of it carried
    strength   Cramer's V of the model's answer if it is kept, else of the released counts less what noise adds

Nothing is looked at but the model and the noisy counts, so this costs no privacy, and can be told to
everybody. What was not measured is not judged. `docs/design/judgement.md` has the cases on which it was
tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synth.judgement.dependence import PairCounts, pairs_of, residual, score

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.mrf import Model
    from synth.synthesis import Measured

Array = NDArray[np.float64]

FALSE_ALARMS = 0.1
"""Of a result whose columns are independent: how often some pair is said to be seen."""
KEPT = 0.5
MAX_LISTED, NAMED = 12, 3
MAX_PAIRS = 5_000
"""Of pairs that are judged; of more, those measured first."""


@dataclass(frozen=True)
class PairVerdict:
    """strength: Cramer's V, 0 to 1. kept: the share of the dependence that the table carries, 0 to 1."""

    columns: Clique
    strength: float
    kept: float


@dataclass(frozen=True)
class Relations:
    """kept, visible, pairs: of pairs of columns, those carried, those that the release sees, and all. share:
    mean carried share of those seen. strongest: of the kept ones. lost: seen and not kept. unrelated: columns
    in no pair that is kept."""

    kept: int
    visible: int
    pairs: int
    share: float
    strongest: tuple[PairVerdict, ...]
    lost: tuple[PairVerdict, ...]
    unrelated: Clique

    @property
    def sentence(self) -> str:
        """The verdict."""
        lost = f"; lost: {_named(self.lost)}" if self.lost else ""
        if not self.kept:
            return f"No relations kept: the columns of this table tell nothing about each other{lost}."
        seen = f"{self.kept} of {self.visible} pairs of columns that show through the noise"
        return f"Relations kept: {seen}, the strongest {_named(self.strongest)}{lost}."

    def to_json(self) -> dict[str, Any]:
        """For run.json."""
        return {"sentence": self.sentence, **asdict(self)}


def relations(
    model: Model, measurements: Sequence[Measured], sizes: Mapping[str, int], independent: bool
) -> Relations:
    """Judge a release. sizes: of the columns. independent: whether the run gave up joint marginals, so that
    none is followed."""
    found: dict[Clique, list[tuple[PairCounts, Measured]]] = {}
    for measured in measurements:
        for pair in pairs_of(measured, sizes):
            key = pair.columns if pair.columns in found or len(found) < MAX_PAIRS else None
            if key is not None and min(pair.counts.shape) > 1:
                found.setdefault(key, []).append((pair, measured))
    limit = threshold(len(found))
    seen = {key: of for key, of in found.items() if score(pair for pair, _ in of) > limit}
    answers = dict(zip(seen, model.marginals(list(seen)), strict=True))
    judged = [_judged(key, of, answers[key], sizes, independent) for key, of in seen.items()]
    kept = sorted((one for one in judged if one.kept >= KEPT), key=lambda one: (-one.strength, one.columns))
    lost = sorted((one for one in judged if one.kept < KEPT), key=lambda one: (-one.strength, one.columns))
    related = {name for one in kept for name in one.columns}
    return Relations(
        len(kept),
        len(judged),
        math.comb(len(sizes), 2),
        round(sum(one.kept for one in judged) / len(judged), 3) if judged else 0.0,
        tuple(kept[:MAX_LISTED]),
        tuple(lost[:MAX_LISTED]),
        tuple(name for name in sizes if name not in related),
    )


def threshold(pairs: int) -> float:
    """The score above which one of so many pairs is taken to be related."""
    return NormalDist().inv_cdf(1 - FALSE_ALARMS / max(1, pairs))


def cramers_v(counts: Array, *, corrected: bool = False) -> float:
    """Cramer's V of a table of counts (m, n), 0 (independent) to 1 (one decides the other); empty lines do
    not count.

    corrected: for what drawing so many rows adds (Bergsma 2013).
    """
    joint = np.clip(counts, 0.0, None)
    total = float(joint.sum())
    least = 1e-12 * total  # below it a product of two line sums could vanish in double precision
    joint = joint[joint.sum(axis=1) > least][:, joint.sum(axis=0) > least]
    used = [float(lines) for lines in joint.shape]
    if min(used) < 2:
        return 0.0
    joint = joint / joint.sum()
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    squared = float((np.square(joint - expected) / expected).sum())
    if corrected and total > 1:
        squared = max(0.0, squared - (used[0] - 1) * (used[1] - 1) / (total - 1))
        used = [lines - (lines - 1) ** 2 / (total - 1) for lines in used]
    return min(1.0, math.sqrt(squared / (min(used) - 1))) if min(used) > 1 else 0.0


def _judged(
    columns: Clique,
    tables: Sequence[tuple[PairCounts, Measured]],
    answer: Array,
    sizes: Mapping[str, int],
    independent: bool,
) -> PairVerdict:
    """One pair, by the clearest of its measurements."""
    pair, measured = max(tables, key=lambda of: score([of[0]]))
    model = answer.reshape(sizes[columns[0]], sizes[columns[1]])
    for axis, name in enumerate(columns):
        if name in measured.bins:
            bins = np.array(measured.bins[name])
            sums = np.eye(int(bins.max()) + 1)[bins]
            model = sums.T @ model if axis == 0 else model @ sums
    carried = 0.0 if independent else _dependence(model)
    total = float(pair.counts.sum())
    noise = pair.noise_alone
    size = float(np.square(residual(pair.counts)).sum())
    shown = math.sqrt(max(size - noise, 0.05 * size)) / max(1.0, total)
    kept = min(1.0, carried / shown) if shown > 0 else 0.0
    strength = (
        cramers_v(model)
        if kept >= KEPT
        else min(1.0, cramers_v(pair.counts) * math.sqrt(max(size - noise, 0) / size))
    )
    return PairVerdict(columns, round(strength, 3), round(kept, 3))


def _dependence(counts: Array) -> float:
    """||r|| as a share of the rows."""
    return float(np.linalg.norm(residual(counts))) / max(1e-9, float(counts.sum()))


def _named(pairs: Sequence[PairVerdict]) -> str:
    return ", ".join(" x ".join(pair.columns) for pair in pairs[:NAMED]) + (
        ", .." if len(pairs) > NAMED else ""
    )
