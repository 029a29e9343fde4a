"""Our AIM beside dpmm's: two implementations of one paper that share no code. Not a test: figures.

    make second-opinion                                the survey of `cosynth demo`
    make second-opinion DATA=DIR TABLES=asia,sachs     tables of `bench utility`

The same rows, 64 triples, epsilon, delta 1e-5 and 4 MiB for the model in both; the error is that of `bench
utility`, by our code. dpmm takes the true number of rows for its table and starts at 16 rounds a column; ours
takes the noisy total, and starts at 8. dpmm fits with as many iterations after every round as at the end,
without a test of whether it has arrived, at 2 to 4 ms each on 6 to 8 columns: with its default of 1,000 a run
takes minutes. ITERATIONS is what it gets here. A run that takes longer than the limit is stopped, and named.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from runner.bench.utility.options import spread
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import Table, chosen, names
from runner.starting.demo import coded, prepare, survey
from runner.study import load
from synth.judgement.metrics import workload_error
from tests.acceptance import peers

SIDE = Path(__file__).with_name("dpmm_side.py")
OURS = ("independent", "aim:rounds=adaptive", "mosaic")
DELTA, MODEL_MB, ITERATIONS = 1e-5, 4, 100
PORTS = (7101, 7102, 7103)  # nobody listens


def demo() -> Table:
    """The demo's survey, coded by the demo's study."""
    with tempfile.TemporaryDirectory() as folder:
        domain = load(prepare(Path(folder), PORTS)).domain
    return Table("demo", domain, coded(survey(), domain))


def dpmm(table: Table, seed: int, options: argparse.Namespace) -> tuple[float, float] | None:
    """(error, CPU seconds) of one run of dpmm's AIM; None if it took longer than the limit."""
    numbers = (options.epsilon, DELTA, seed, MODEL_MB, options.iterations)
    made = peers.table_of(options.python, SIDE, table, numbers, options.limit_s)
    if made is None:
        print(f"{table.name}: seed {seed} of dpmm's AIM took longer than {options.limit_s:g} s", flush=True)
        return None
    return workload_error(table.codes, made.codes, table.domain, table.workload.cliques), made.cpu_s


def show(table: Table, row: str, runs: Sequence[tuple[float, float]]) -> None:
    """A line of figures. runs: (error, CPU seconds) of each."""
    errors, seconds = ([values[place] for values in runs] for place in (0, 1))
    print(f"{table.name:12}{row:22}{spread(errors):>20}{spread(seconds):>22}{len(runs):>6}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, required=True, help="of an environment with dpmm")
    parser.add_argument("--data", type=Path, help="a folder of tables (default: the demo's survey)")
    parser.add_argument("--tables", help="of the folder, with commas between them (default: all)")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of dpmm's fit, after every round")
    parser.add_argument("--limit-s", type=float, default=600.0, help="seconds for a run of dpmm's")
    options = parser.parse_args()
    tables, absent = [demo()], list[str]()
    if options.data:
        wanted = options.tables.split(",") if options.tables else names(options.data)
        tables, absent = chosen(options.data, wanted)
    if absent:
        print(f"not in {options.data}, left out: {', '.join(absent)}")
    print(
        f"epsilon {options.epsilon:g}, delta {DELTA:g}, {options.seeds} seeds, {options.iterations} iterations of dpmm's fit"
    )
    print(f"{'table':12}{'algorithm':22}{'error':>20}{'CPU s':>22}{'runs':>6}")
    for table in tables:
        for text in OURS:
            found = [
                run(Row.parse(text), table, options.epsilon, DELTA, seed) for seed in range(options.seeds)
            ]
            show(table, text, [(one.scores["err"], one.cpu_s[0]) for one in found])
        theirs = [dpmm(table, seed, options) for seed in range(options.seeds)]
        show(table, "dpmm's AIM", [one for one in theirs if one])


if __name__ == "__main__":
    main()
