"""Whether `plan` foretells if a run keeps relations, on the generated tables of `verdicts`.

    python -m tests.acceptance.forecasts [--algorithms mosaic] [--seed 1] [--all]

The forecast knows rows, epsilon and sizes of columns; of a shuffled table it is what it says of tables
without relations. The outcome is a run's own verdict on the table. Ends 1 if they agree on less than 90 %
(relations kept or not).
"""

from __future__ import annotations

import argparse
import itertools

from cosynth import Study
from runner.forecast.trial import trial
from synth.judgement.relations import relations
from tests.acceptance.small_tables import DELTA
from tests.acceptance.verdicts import cases, run, workload_of

LEAST_RIGHT = 0.9


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", default="mosaic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    right = count = 0
    for algorithm, (found, epsilon, permuted) in itertools.product(
        options.algorithms.split(","), list(cases())
    ):
        study = Study.of(
            found.name,
            found.domain.sizes,
            ["a"],
            epsilon=epsilon,
            delta=DELTA,
            backend="ideal",
            algorithm=algorithm,
            workload=workload_of(found),
        )
        foretold = trial(study, len(found.rows))
        assert foretold is not None
        expected = (foretold.unrelated if permuted else foretold.related).keeps
        synthesis = run(algorithm, found, epsilon, options.seed)
        verdict = relations(
            synthesis.model, synthesis.measurements, found.domain.sizes, synthesis.noise_share is not None
        )
        agree = expected == (verdict.kept > 0)
        count, right = count + 1, right + agree
        if options.all or not agree:
            name = (
                f"{algorithm} {found.name} {len(found.rows)} rows epsilon {epsilon:g}{' shuffled' * permuted}"
            )
            print(f"{'right' if agree else 'WRONG'}  {name}: {foretold.sentence}; {verdict.sentence}")
    print(f"{right} of {count} forecasts agree with the run")
    raise SystemExit(right < LEAST_RIGHT * count)


if __name__ == "__main__":
    main()
