"""A study from Python: three data frames in, one synthetic data frame out, all parties on this machine.

python examples/from_python.py [STUDY [OUT]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from cosynth import run_study

HERE = Path(__file__).resolve().parent


def main(study: Path, out: Path) -> None:
    """Run the study on frames and show what came of it."""
    tables = HERE / "three_custodians"
    frames = {name: pd.read_csv(tables / f"{name}.csv") for name in ("north", "south", "west")}
    run = run_study(study, data=frames, out=out)
    synthetic = run.synthetic
    print(f"{len(synthetic):,} synthetic rows; epsilon {run.summary['privacy']['epsilon']:g}")
    print("mean age:", round(synthetic["age"].mean(), 1))
    print(pd.crosstab(synthetic["work"], synthetic["married"], normalize="index").round(2))
    print("report:", run.report)


if __name__ == "__main__":
    arguments = [Path(argument) for argument in sys.argv[1:]]
    main(*(arguments + [HERE / "three_custodians" / "study.toml", Path("out-from-python")][len(arguments) :]))
