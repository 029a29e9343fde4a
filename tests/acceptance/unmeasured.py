"""How far pairs that a run did not measure can be from its model, by what was selected instead of them.

    python -m tests.acceptance.unmeasured [--data DIR] [--tables law] [--algorithms aim,mosaic] [--rows 10000] [--epsilon 1]
        [--runs 3] [--seed 1]

The bounds are those that `infer` states (`synth/inference/unmeasured.py`, `docs/design/inference.md` 13). Of
each cell:

    bound     median over unmeasured pairs of the least bound over all selections: by so much the share of the rows in any set of
              cells may differ from the model's
    truth     the same of the real distance
    fails     pairs whose bound lies below the truth (b is .05 for all together)
    margins   what single columns allow without any selection (Frechet): half the range of the pair's widest cell
    halved    share of unmeasured pairs with a cell whose range the bound halves
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from runner.results.replay import WatchedOracle
from synth.inference.unmeasured import bounds, widest
from synth.judgement.metrics import marginal
from tests.acceptance.coverage import release, study_of
from tests.acceptance.coverage_populations import Population, population


def one_run(
    of: Population, algorithm: str, epsilon: float, rows: int, seed: bytes
) -> list[tuple[float, ...]]:
    """Of each unmeasured pair: bound, truth, the widest cell's range, 1 if a cell's range is halved."""
    oracles: list[WatchedOracle] = []

    def oracle_of(*args: Any, **options: Any) -> WatchedOracle:
        oracles.append(WatchedOracle(*args, **options))
        return oracles[0]

    real = of.draw(rows, np.random.default_rng([*seed, 1]))
    study = study_of(of, algorithm, epsilon, (), 0.0)
    synthesis = release(of, real, study, seed, oracle_of)
    model, found = synthesis.model, list[tuple[float, ...]]()
    known = bounds(oracles[0].picks, synthesis.measurements, model, of.domain.names)
    for pair, bound in known.items():
        off, margins = marginal(real, of.domain, pair) - model.marginal(pair), widest(model, pair)
        truth = float(np.abs(off).sum() + abs(off.sum())) / 2 / model.total
        found.append((bound, truth, margins, float(bound < margins / 2)))
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
