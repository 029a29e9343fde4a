"""How far pairs that a run did not measure can be from its model, by what was selected instead of them.

    python -m tests.acceptance.unmeasured [--data DIR] [--tables law] [--algorithms aim,mosaic] [--rows 10000] [--epsilon 1]
        [--runs 3] [--seed 1]

McKenna, Mullins, Sheldon, Miklau 2022 ("AIM"), the confidence bounds of marginals that no measurement
supports. Each selection scored its candidates r by w_r (L1_r - penalty_r), L1_r the distance of the rows from
the model's answer a_r of then, and picked c by the exponential mechanism: with n candidates and sensitivity D
= max w, for all r at once but for a chance b,

    w_r (L1_r - penalty_r) <= w_c (L1_c - penalty_c) + (2 D / epsilon) log(n / b)

and L1_c is bounded by what was measured of c afterwards. The final model is off a_r by a released number, so
that the triangle gives B_r >= |M_r(rows) - M_r(model)|_1. Of each cell (`docs/design/inference.md` 13):

    bound     median over unmeasured pairs of the least B_r / 2 over all selections, as a share of the rows: by so much the count
              of any set of cells may differ
    truth     the same of the real distance
    fails     pairs whose bound lies below the truth (b is .05 for all together)
    margins   what the counts of single columns allow without any selection (Frechet): half the range of the pair's widest cell
    halved    share of unmeasured pairs with a cell whose range the bound halves
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.ideal.oracle import IdealOracle
from synth.judgement.metrics import marginal
from synth.run import Measured, Synthesis
from tests.acceptance.coverage import release, study_of
from tests.acceptance.coverage_populations import Population, population

CHANCE = 0.05
Clique = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Selection:
    """One selection: who could be picked, and who was, in order. absent: at each pick, who had left with an
    earlier one."""

    cliques: tuple[Clique, ...]
    answers: Sequence[NDArray[np.float64]]
    weights: tuple[float, ...]
    penalties: tuple[float, ...]
    epsilon: float
    picked: tuple[int, ...]
    absent: tuple[frozenset[int], ...]


class Watched(IdealOracle):
    """Keeps what was selected."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.selections: list[Selection] = []

    def select(
        self,
        handles: Sequence[int],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        picked = super().select(handles, answers, weights, penalties, epsilon, picks, conflicts)
        absent: list[frozenset[int]] = []
        for number in range(len(picked)):
            gone = set(picked[:number])
            absent.append(frozenset(q for pair in conflicts for q in pair if gone & set(pair)) | gone)
        self.selections.append(
            Selection(
                tuple(self.state.cliques[handle] for handle in handles),
                [answer.copy() for answer in answers],
                tuple(map(float, weights)),
                tuple(map(float, penalties)),
                float(epsilon),
                tuple(picked),
                tuple(absent),
            )
        )
        return picked


def most_distance(
    values: NDArray[np.float64], answer: NDArray[np.float64], sigma2: float, chance: float
) -> float:
    """An upper limit of L1(M - answer) by M with noise: the smaller one of two, each but for half the chance.
    One by the L2 distance (a noncentral chi square), one by the noise's own L1 norm."""
    cells, sigma = values.size, math.sqrt(sigma2)
    seen = float(np.square(values - answer).sum()) / sigma2
    low, high = 0.0, 2 * seen + 50.0 + 10 * cells
    for _ in range(50):
        middle = (low + high) / 2
        if float(stats.ncx2.cdf(seen, cells, max(middle, 1e-12))) > chance / 2:
            low = middle
        else:
            high = middle
    by_squares = sigma * math.sqrt(cells * high)
    norm = cells * math.sqrt(2 / math.pi) + float(stats.norm.isf(chance / 2)) * math.sqrt(
        cells
    )  # Lipschitz: sqrt(cells)
    return min(by_squares, float(np.abs(values - answer).sum()) + sigma * norm)


def bounds(
    selections: Sequence[Selection], synthesis: Synthesis, columns: Sequence[str]
) -> dict[Clique, float]:
    """B_r of every pair that was a candidate, at its full resolution, and not measured."""
    measured: dict[Clique, Measured] = {m.clique: m for m in synthesis.measurements}
    pairs = [pair for pair in itertools.combinations(columns, 2) if not holds(synthesis.measurements, pair)]
    found: dict[Clique, float] = {}
    picks = sum(len(one.picked) for one in selections)
    for one in selections:
        place = {clique: q for q, clique in enumerate(one.cliques)}
        finite = [weight for weight in one.weights if weight > 0]
        for pick, absent in zip(one.picked, one.absent, strict=True):
            taken = measured.get(one.cliques[pick])
            if taken is None:
                continue
            chance = CHANCE / picks / 2
            far = most_distance(taken.values.astype(float), one.answers[pick], float(taken.sigma2), chance)
            score = one.weights[pick] * (far - one.penalties[pick])
            score += 2 * max(finite) / one.epsilon * math.log(len(place) / chance)
            for pair in pairs:
                if (q := place.get(pair)) is None or q in absent:
                    continue
                least = max(0.0, score / one.weights[q] + one.penalties[q])
                least += float(np.abs(one.answers[q] - synthesis.model.marginal(pair)).sum())
                found[pair] = min(found.get(pair, math.inf), least)
    return found


def holds(measurements: Sequence[Measured], pair: Clique) -> bool:
    """Whether one was measured of both columns, be it over bins."""
    columns = [
        {next((level.column for level in m.levels if level.name == name), name) for name in m.clique}
        for m in measurements
    ]
    return any(set(pair) <= each for each in columns)


def cell_ranges(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of what the counts of both columns leave open of each cell, as a share of all rows."""
    share = rows / rows.sum()
    one, other = share.sum(1)[:, None], share.sum(0)[None, :]
    ranges: NDArray[np.float64] = (np.minimum(one, other) - np.maximum(0.0, one + other - 1)) / 2
    return ranges


def one_run(
    of: Population, algorithm: str, epsilon: float, rows: int, seed: bytes
) -> list[tuple[float, ...]]:
    """Of each unmeasured pair: bound, truth, the widest cell's range, 1 if a cell's range is halved."""
    oracles: list[Watched] = []

    def oracle_of(*args: Any, **options: Any) -> Watched:
        oracles.append(Watched(*args, **options))
        return oracles[0]

    real = of.draw(rows, np.random.default_rng([*seed, 1]))
    study = study_of(of, algorithm, epsilon, (), 0.0)
    synthesis = release(of, real, study, seed, oracle_of)
    found: list[tuple[float, ...]] = []
    for pair, bound in bounds(oracles[0].selections, synthesis, of.domain.names).items():
        counts = marginal(real, of.domain, pair).astype(np.float64)
        ranges = cell_ranges(counts.reshape([of.domain.sizes[name] for name in pair]))
        half = bound / 2 / rows
        truth = float(np.abs(counts - synthesis.model.marginal(pair)).sum()) / 2 / rows
        found.append((half, truth, float(ranges.max()), float(half < ranges.max() / 2)))
    return found


def main() -> None:
    """See the file's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", default="law")
    parser.add_argument("--algorithms", default="aim,mosaic")
    parser.add_argument("--rows", default="10000")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| table | algorithm | rows | epsilon | runs | pairs | bound | truth | fails | margins | halved |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for table, algorithm, rows, epsilon in itertools.product(
        given.tables.split(","),
        given.algorithms.split(","),
        map(int, given.rows.split(",")),
        map(float, given.epsilon.split(",")),
    ):
        of = population(table, given.data)
        pairs = []
        for run in range(given.runs):
            seed = np.random.default_rng([given.seed, run, rows, int(10 * epsilon)]).bytes(16)
            pairs += one_run(of, algorithm, epsilon, rows, seed)
        cell = f"| {table} | {algorithm} | {rows:,} | {epsilon:g} | {given.runs} | {len(pairs)}"
        if not pairs:
            print(f"{cell} | - | - | - | - | - |", flush=True)
            continue
        bound, truth, margins, halved = np.array(pairs).T
        print(
            f"{cell} | {np.median(bound):.3f} | {np.median(truth):.3f} | {int((bound < truth).sum())} "
            f"| {np.median(margins):.3f} | {halved.mean():.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
