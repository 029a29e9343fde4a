"""A result judged by SDMetrics beside our own judgement, which share no code. NOT PRIVATE, as `evaluate` is
not.

    make cross-check RESULT=out REAL=people.csv

SDMetrics compares values where `evaluate` compares codes: of a number it takes the largest difference of
distribution functions, of two numbers the correlation. So the scores differ; what should agree is how far
each lies from those of columns without a relation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from runner.api import load

SIDE = Path(__file__).with_name("sdmetrics_side.py")
SINGLES, PAIRS = "Column Shapes", "Column Pair Trends"
NUMBERS, SEED = ("numeric", "integer"), 1


def scores(
    python: Path, real: pd.DataFrame, synthetic: pd.DataFrame, columns: list[dict[str, str]]
) -> dict[str, float]:
    """SDMetrics' scores of a table."""
    kinds = {
        column["name"]: {"sdtype": "numerical" if column["kind"] in NUMBERS else "categorical"}
        for column in columns
    }
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("real.csv", "synthetic.csv", "metadata.json")]
        for frame, path in zip((real, synthetic), files, strict=False):
            frame[list(kinds)].to_csv(path, index=False)
        files[2].write_text(json.dumps({"columns": kinds}), encoding="utf-8")
        said = subprocess.run([python, SIDE, *files], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(said.stdout)
    return found


def main() -> None:
    """Print both judgements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("result", type=Path, metavar="RESULT", help="the --out directory of a finished run")
    parser.add_argument("real", type=Path, metavar="REAL", help="a CSV file of real rows")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with sdmetrics")
    options = parser.parse_args()
    run = load(options.result)
    real, synthetic = pd.read_csv(options.real), pd.read_csv(options.result / "synthetic.csv")
    columns = json.loads((options.result / "run.json").read_text(encoding="utf-8"))["columns"]
    rng = np.random.default_rng(SEED)
    apart = pd.DataFrame({name: rng.permutation(values.to_numpy()) for name, values in synthetic.items()})
    ours = run.evaluate(real).distances
    theirs, theirs_apart = (scores(options.python, real, of, columns) for of in (synthetic, apart))
    print("NOT PRIVATE: functions of the real rows. Do not publish them.\n")
    print(f"{'':42}{'synthetic':>12}{'columns apart':>16}")
    for degree, name in ((1, SINGLES), (2, PAIRS)):
        figure = ours[degree]
        beside = "" if figure.apart is None else f"{1 - figure.apart:16.4f}"
        what = "single columns" if degree == 1 else "pairs"
        print(f"{f'1 - our distance of {what}':42}{1 - figure.value:12.4f}{beside}")
        print(f"{f'SDMetrics, {name}':42}{theirs[name]:12.4f}{theirs_apart[name]:16.4f}")


if __name__ == "__main__":
    main()
