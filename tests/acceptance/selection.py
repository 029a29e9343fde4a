"""What selection does to the intervals of `infer`: the pairs that a run has picked among many.

    python -m tests.acceptance.selection [--algorithms aim,mosaic] [--rows 1000] [--epsilon 1,10] [--correlation 0]
        [--picks 3] [--runs 60] [--seed 1]

30 binary columns, each pair of neighbours correlated as said and all others not, 435 candidates; a release
with so many picks. Of the correlation of each pair that was measured:

    people, rows      the share of 95 % intervals (`--population`, `--rows`) that hold the truth
    excess            the mean of the estimate beyond the people's correlation, in the direction that the rows have; of the rows'
    standard errors   the median of what `infer` says, of both kinds

Measures, and judges nothing: ends 0.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.study import Study
from synth.domain import Codes, Domain
from synth.inference import Answer, infer
from synth.inference.answers import Target
from synth.synthesis import Synthesis
from tests.acceptance.coverage import DELTA, LEVEL, codes_of, release
from tests.acceptance.coverage_populations import Population

COLUMNS = 30
DOMAIN = Domain(tuple(f"c{j}" for j in range(COLUMNS)), (Codes(2),) * COLUMNS)


@dataclass(frozen=True)
class Pair:
    """A pair that was measured: its correlation among the people and among the rows, and both answers."""

    truth: float
    sample: float
    people: Answer
    rows: Answer


def neighbours(correlation: float) -> Population:
    """Fair bits; each second one copies the one before it as often as said."""

    def draw(rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        bits = rng.integers(0, 2, (rows, COLUMNS))
        copied = rng.random((rows, COLUMNS // 2)) < correlation
        bits[:, 1::2] = np.where(copied, bits[:, ::2], bits[:, 1::2])
        return bits.astype(np.int64)

    return Population(DOMAIN, draw, np.zeros((0, COLUMNS), np.int64), np.zeros(0))


def answers(synthesis: Synthesis, real: NDArray[np.int64], correlation: float) -> Iterator[Pair]:
    """Of each pair that was measured and has an interval."""
    place = {name: j for j, name in enumerate(DOMAIN.names)}
    targets: tuple[Target, ...] = ("population", "rows")
    for clique in dict.fromkeys(m.clique for m in synthesis.measurements if len(m.clique) == 2):
        one, other = (place[name] for name in clique)
        people, rows = (
            infer(
                [f"corr({', '.join(clique)})"],
                DOMAIN,
                synthesis.model,
                synthesis.measurements,
                {"privacy": {"events": []}},
                codes_of(DOMAIN),
                level=LEVEL,
                target=target,
            )[0]
            for target in targets
        )
        if people.low is not None and rows.low is not None:
            sample = float(np.corrcoef(real[:, one], real[:, other])[0, 1])
            yield Pair(correlation if one // 2 == other // 2 else 0.0, sample, people, rows)


def holds(answer: Answer, truth: float) -> bool:
    """Whether the interval does."""
    return answer.low is not None and answer.high is not None and answer.low <= truth <= answer.high


def told(pairs: list[Pair]) -> str:
    """A line of the table."""
    excess = [float(np.sign(p.sample)) * ((p.people.estimate or 0.0) - p.truth) for p in pairs]
    of_rows = [float(np.sign(p.sample)) * (p.sample - p.truth) for p in pairs]
    errors = [
        float(np.median([answer.standard_error or 0.0 for answer in of]))
        for of in ([p.people for p in pairs], [p.rows for p in pairs])
    ]
    people = np.mean([holds(p.people, p.truth) for p in pairs])
    rows = np.mean([holds(p.rows, p.sample) for p in pairs])
    return (
        f"{len(pairs)} | {people:.3f} | {rows:.3f} | {np.mean(excess):.3f} | {np.mean(of_rows):.3f} "
        f"| {errors[0]:.3f} | {errors[1]:.3f} |"
    )


def main() -> None:
    """See the file's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", default="aim,mosaic")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--epsilon", default="1,10")
    parser.add_argument("--correlation", type=float, default=0.0)
    parser.add_argument("--picks", type=int, default=3)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    of = neighbours(given.correlation)
    print(
        "| algorithm | epsilon | pairs | people | rows | excess | of the rows | standard error | of the rows |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for algorithm, epsilon in itertools.product(
        given.algorithms.split(","), map(float, given.epsilon.split(","))
    ):
        tables: dict[str, Any] = {algorithm: {"rounds": given.picks}}
        study = Study.of(
            "selection",
            DOMAIN.sizes,
            ["one", "two", "three"],
            epsilon=epsilon,
            delta=DELTA,
            algorithm=algorithm,
            backend="ideal",
            partition="horizontal",
            **tables,
        )
        pairs: list[Pair] = []
        for run in range(given.runs):
            rng = np.random.default_rng([given.seed, run])
            real = of.draw(given.rows, rng)
            seed = np.random.default_rng([given.seed, run, 5]).bytes(16)
            pairs += answers(release(of, real, study, seed), real, given.correlation)
        if pairs:
            print(f"| {algorithm} | {epsilon:g} | {told(pairs)}", flush=True)


if __name__ == "__main__":
    main()
