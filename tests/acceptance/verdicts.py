"""Whether the verdict of a run on its own relations is right, on generated tables whose truth is known.

    python -m tests.acceptance.verdicts [--algorithms mosaic,aim] [--seed 1] [--all]

Five laws (`small_tables`), eight pairs of rows (300 to 30,000) and epsilon (.3 to 3), as they are and with
every column shuffled. Wrong is a relation claimed of shuffled columns, none claimed of a model that carries
15 % of the true dependence or more (inner product of residuals, all pairs), or one claimed of a model that
carries less than 2 %. Ends 1 if more than 5 % are wrong. --all: every case is printed. Noise is seeded: a
simulation.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.judgement.dependence import residual
from synth.judgement.metrics import marginal
from synth.judgement.relations import relations
from synth.synthesis import Synthesis
from synth.workload import Workload
from tests.acceptance.small_tables import DELTA, STRONG, Case, case

LAWS = ("diabetes", "compas", "chain", "hub", "apart")
SIZES = ((300, 0.3), (300, 3.0), (600, 1.0), (600, 2.0), (1500, 1.0), (5000, 0.3), (5000, 1.0), (30_000, 1.0))
MOST_WRONG, SOME, LITTLE = 0.05, 0.15, 0.02


def cases() -> Iterator[tuple[Case, float, bool]]:
    """80 tables: the case, epsilon, whether its columns are shuffled."""
    for law, (rows, epsilon), permuted in itertools.product(LAWS, SIZES, (False, True)):
        found = case(law, rows, None, permuted)
        assert found is not None
        yield found, epsilon, permuted


def workload_of(found: Case) -> dict[str, Any]:
    """All triples of tables that depend strongly, all pairs of others."""
    return {"degree": 3 if found.name in STRONG else 2}


def run(algorithm: str, found: Case, epsilon: float, seed: int) -> Synthesis:
    """A run in the clear, with seeded noise."""
    rng = np.random.default_rng([seed, 20])
    chosen, domain = ALGORITHMS[algorithm], found.domain
    plan = chosen.plan(
        domain,
        Workload.from_spec(workload_of(found), domain),
        chosen.config(),
        epsilon=epsilon,
        delta=DELTA,
        adjacency="add-remove",
    ).knowing(dict.fromkeys(domain.names, "first"))
    oracle = IdealOracle(
        StudyFacts(domain.sizes, "add-remove", 1, 1 << 22, rng.bytes(32)),
        lambda cliques: [marginal(found.rows, domain, clique) for clique in cliques],
        Accountant(plan.budget),
        rng.bytes,
    )
    synthesis: Synthesis = chosen.run(oracle, plan, unobserved)
    return synthesis


def carried(found: Case, synthesis: Synthesis, permuted: bool) -> float:
    """How much of the true dependence the model has, by rows of the same law that it has not seen."""
    both = there = 0.0
    for pair in itertools.combinations(found.domain.names, 2):
        shape = [found.domain.sizes[name] for name in pair]
        model = np.asarray(synthesis.model.marginal(pair), np.float64).reshape(shape)
        real = marginal(found.rows if permuted else found.test, found.domain, pair).reshape(shape)
        ours, theirs = residual(model) / model.sum(), residual(real.astype(np.float64)) / real.sum()
        both, there = both + float((ours * theirs).sum()), there + float(np.square(theirs).sum())
    return both / there


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", default="mosaic,aim")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    wrong = count = 0
    for algorithm, (found, epsilon, permuted) in itertools.product(
        options.algorithms.split(","), list(cases())
    ):
        synthesis = run(algorithm, found, epsilon, options.seed)
        verdict = relations(
            synthesis.model, synthesis.measurements, found.domain.sizes, synthesis.noise_share is not None
        )
        truth = carried(found, synthesis, permuted)
        mistaken = (
            verdict.kept > 0
            if permuted
            else (truth > SOME and not verdict.kept) or (truth < LITTLE and verdict.kept > 0)
        )
        count, wrong = count + 1, wrong + mistaken
        if mistaken or options.all:
            name = (
                f"{algorithm} {found.name} {len(found.rows)} rows epsilon {epsilon:g}{' shuffled' * permuted}"
            )
            print(f"{'WRONG' if mistaken else 'right'}  {name}: carries {truth:.2f}; {verdict.sentence}")
    print(f"{wrong} of {count} verdicts wrong")
    raise SystemExit(wrong > MOST_WRONG * count)


if __name__ == "__main__":
    main()
