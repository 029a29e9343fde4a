"""Our AIM beside dpmm's, on small tables: two implementations of one paper that share no code. Not a test: figures.

    make second-opinion DATA=DIR TABLES=asia,sachs

Workload, epsilon and error are those of `bench utility`; delta is 1e-5 and the model may have 4 MiB in both. dpmm takes the true
number of rows for its table, and starts at 16 rounds a column; ours takes the noisy total, and starts at 8.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from runner.bench.benches.utility import spread
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import Table, chosen
from synth.metrics import workload_error

SIDE = Path(__file__).with_name("dpmm_side.py")
OURS = ("aim:rounds=adaptive", "mosaic")
DELTA, MODEL_MB = 1e-5, 4


def dpmm(python: Path, table: Table, epsilon: float, seed: int) -> tuple[float, float]:
    """(error, CPU seconds) of one run of dpmm's AIM."""
    names = list(table.domain.names)
    with tempfile.TemporaryDirectory() as folder:
        study = {"sizes": table.domain.sizes, "workload": table.workload.cliques}
        Path(folder, "study.json").write_text(json.dumps(study), encoding="utf-8")
        pd.DataFrame(table.codes, columns=names).to_csv(Path(folder, "codes.csv"), index=False)
        said = subprocess.run(
            [str(python), str(SIDE), folder, str(epsilon), str(DELTA), str(seed), str(MODEL_MB)],
            check=True,
            capture_output=True,
            text=True,
        )
        codes = pd.read_csv(Path(folder, "synthetic.csv"))[names].to_numpy(np.int64)
    error = workload_error(table.codes, codes, table.domain, table.workload.cliques)
    return error, float(said.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, required=True, help="of an environment with dpmm")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    tables, absent = chosen(options.data, options.tables.split(","))
    if absent:
        print(f"not in {options.data}, left out: {', '.join(absent)}")
    for table in tables:
        theirs = [dpmm(options.python, table, options.epsilon, seed) for seed in range(options.seeds)]
        errors, seconds = zip(*theirs, strict=True)
        print(f"{table.name}: dpmm's AIM {spread(errors)}, CPU {spread(seconds)} s", flush=True)
        for text in OURS:
            found = [
                run(Row.parse(text), table, options.epsilon, DELTA, seed) for seed in range(options.seeds)
            ]
            errors, seconds = [one.scores["err"] for one in found], [one.cpu_s[0] for one in found]
            print(f"{table.name}: {text} {spread(errors)}, CPU {spread(seconds)} s", flush=True)


if __name__ == "__main__":
    main()
