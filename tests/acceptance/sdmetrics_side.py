"""SDMetrics on files: run by an interpreter of its own, which has none of our packages (`cross_check.py`).

python sdmetrics_side.py REAL.csv SYNTHETIC.csv METADATA.json
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pandas as pd


def main() -> None:
    """Print the scores of its quality report as JSON, 0 to 1 (best)."""
    real, synthetic = (pd.read_csv(path) for path in sys.argv[1:3])
    metadata = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))
    for name, column in metadata["columns"].items():
        if column["sdtype"] == "categorical":
            real[name], synthetic[name] = real[name].astype(str), synthetic[name].astype(str)
    report = importlib.import_module("sdmetrics.reports").QualityReport()
    table = "people"
    report.generate({table: real}, {table: synthetic}, {"tables": {table: metadata}}, verbose=False)
    print(json.dumps(dict(report.get_properties().to_numpy().tolist())))


if __name__ == "__main__":
    main()
