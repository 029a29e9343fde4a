"""How far a pair that was not measured can be from the model: what was not selected was not much worse than
what was.

McKenna, Mullins, Sheldon, Miklau 2022 ("AIM"), the confidence bounds of marginals that no measurement
supports; statement and proof in `docs/design/inference.md` 13. A pick of a selection is the exponential
mechanism with scores w_r L1(M_r - a_r) - b_r, a_r the model's answer of then: with n candidates and noise of
scale s, for all r at once but for a chance p,

    w_r L1_r - b_r <= w_c L1_c - b_c + s log(n / p)

and L1_c is bounded by what was measured of c afterwards. The released model is off a_r by a known number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from synth.inference.moments import Array
from synth.mrf import Model
from synth.synthesis import Measured

CHANCE = 0.05
"""That any bound of a run fails."""
Clique = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pick:
    """One pick. number: of the run's, from 1, which its measurement names as its round. chosen: what was
    picked. offered: of every candidate that could be, this one included, the model's answer, weight and bias
    in units of the score. scale: of the noise, in these units; step: by how much a key's noise may be off a
    Gumbel variable of this scale."""

    number: int
    chosen: Clique
    offered: Mapping[Clique, tuple[Array, int, int]]
    scale: float
    step: float


def bounds(
    picks: Sequence[Pick], measurements: Sequence[Measured], model: Model, columns: Sequence[str]
) -> dict[Clique, float]:
    """Of pairs of columns that no measurement holds together, in their order: by how much at most the rows
    that were counted and the model differ in any set of the pair's cells, as a share of the model's rows; all
    hold together but for `CHANCE`. A pair that no selection offered as it is has none."""
    after = {m.round: m for m in measurements if m.round}
    held = [set(m.columns) for m in measurements]
    pairs = [pair for pair in itertools.combinations(columns, 2) if not any(set(pair) <= of for of in held)]
    chance, found = CHANCE / (2 * len(picks) + 1), dict[Clique, float]()
    for pick in picks:
        taken = after.get(pick.number)
        if taken is None or taken.clique != pick.chosen:
            continue
        answer, weight, bias = pick.offered[pick.chosen]
        far = most_distance(taken.values.astype(np.float64), answer, float(taken.sigma2), chance)
        most = weight * (far + answer.size) - bias  # answers are rounded to integers
        most += pick.scale * math.log(len(pick.offered) / chance) + pick.step
        for pair in pairs:
            clique = pair if pair in pick.offered else pair[::-1]
            if clique in pick.offered:
                answer, weight, bias = pick.offered[clique]
                distance = max(0.0, (most + bias) / weight) + answer.size
                distance += float(np.abs(answer - model.marginal(clique)).sum())
                found[pair] = min(found.get(pair, math.inf), distance)
    precision = sum(1 / (m.values.size * float(m.sigma2)) for m in measurements)
    sums = sum(float(m.values.sum()) / (m.values.size * float(m.sigma2)) for m in measurements)
    apart = abs(sums / precision - model.total) + stats.norm.isf(chance / 2) / math.sqrt(precision)
    return {
        pair: float(distance + min(distance, apart)) / 2 / model.total for pair, distance in found.items()
    }


def most_distance(values: Array, answer: Array, sigma2: float, chance: float) -> float:
    """An upper limit of L1(M - answer) by M with noise: the smaller one of two, each but for half the chance.
    One by the L2 distance (a noncentral chi square), one by the noise's own L1 norm."""
    cells, sigma = values.size, math.sqrt(sigma2)
    seen = float(np.square(values - answer).sum()) / sigma2
    low, high = 0.0, 2 * seen + 50.0 + 10 * cells
    for _ in range(50):
        middle = (low + high) / 2
        below = float(stats.ncx2.cdf(seen, cells, max(middle, 1e-12)))
        if not below <= chance / 2:  # also where it is not known, of huge arguments
            low = middle
        else:
            high = middle
    by_squares = sigma * math.sqrt(cells * high)
    # of Lipschitz constant sqrt(cells)
    norm = cells * math.sqrt(2 / math.pi) + float(stats.norm.isf(chance / 2)) * math.sqrt(cells)
    return min(by_squares, float(np.abs(values - answer).sum()) + sigma * norm)


def widest(model: Model, pair: Clique) -> float:
    """Half of what the model's single columns leave open of the pair's widest cell (Frechet), as a share of
    its rows."""
    one, other = (model.marginal((name,)) / model.total for name in pair)
    ends = np.minimum(one[:, None], other), np.maximum(0.0, one[:, None] + other - 1)
    return float((ends[0] - ends[1]).max()) / 2
