"""AIM by dpmm, on files: run by dpmm's own interpreter, which has none of our packages (`second_opinion.py`).

python dpmm_side.py FOLDER EPSILON DELTA SEED MODEL_MB ITERATIONS
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def main() -> None:
    """Read FOLDER/codes.csv and study.json; write synthetic.csv and say the CPU seconds."""
    folder, (epsilon, delta, seed, mb, iterations) = Path(sys.argv[1]), sys.argv[2:]
    study: dict[str, Any] = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "codes.csv")
    aim = importlib.import_module("dpmm.models.aim").AIM(
        epsilon=float(epsilon),
        delta=float(delta),
        prng=np.random.RandomState(int(seed)),
        max_model_size=float(mb),
        n_iters=int(iterations),
        domain=study["sizes"],
        n_jobs=1,
    )
    began = time.process_time()
    aim.fit(rows, W=[(tuple(clique), 1.0) for clique in study["workload"]])
    asked = time.process_time() - began
    aim.generate(n_records=len(rows)).to_csv(folder / "synthetic.csv", index=False)
    print(asked)


if __name__ == "__main__":
    main()
