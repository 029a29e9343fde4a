"""SmartNoise's AIM or MST, on files: run by its own interpreter (`peers.py`). It reads each column's values
off the rows, and asks pairs of its own choice.

python smartnoise_side.py FOLDER EPSILON DELTA AIM    (AIM 1; MST 0)
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import pandas as pd


def main() -> None:
    """Read FOLDER/codes.csv; write synthetic.csv and say the CPU seconds."""
    folder, (epsilon, delta, is_aim) = Path(sys.argv[1]), map(float, sys.argv[2:])
    names = list(json.loads((folder / "study.json").read_text(encoding="utf-8"))["sizes"])
    rows = pd.read_csv(folder / "codes.csv")
    warnings.simplefilter("ignore")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        maker = importlib.import_module("snsynth").Synthesizer.create(
            "aim" if is_aim else "mst", epsilon=epsilon, delta=delta
        )
        began = time.process_time()
        maker.fit(rows, categorical_columns=names, preprocessor_eps=0.0)
        fitted = time.process_time() - began
        made = maker.sample(len(rows))
    made.to_csv(folder / "synthetic.csv", index=False)
    print(fitted)


if __name__ == "__main__":
    main()
