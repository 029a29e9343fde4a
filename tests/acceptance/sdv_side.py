"""SDV's Gaussian copula, on files: run by its own interpreter (`peers.py`). It is NOT private: a yardstick
without a promise.

python sdv_side.py FOLDER SEED
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd


def main() -> None:
    """Read FOLDER/codes.csv; write synthetic.csv and say the CPU seconds."""
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    np.random.seed(seed)  # noqa: NPY002 - the only seed that it takes
    names = list(json.loads((folder / "study.json").read_text(encoding="utf-8"))["sizes"])
    rows = pd.read_csv(folder / "codes.csv").astype(str)
    metadata = importlib.import_module("sdv.metadata").Metadata.load_from_dict(
        {"tables": {"rows": {"columns": {name: {"sdtype": "categorical"} for name in names}}}}
    )
    copula = importlib.import_module("sdv.single_table").GaussianCopulaSynthesizer(metadata)
    began = time.process_time()
    copula.fit({"rows": rows})
    fitted = time.process_time() - began
    copula.sample(len(rows))["rows"].to_csv(folder / "synthetic.csv", index=False)
    print(fitted)


if __name__ == "__main__":
    main()
