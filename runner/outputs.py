"""The files a finished run leaves at every party (DESIGN section 8): written beside their final place, then moved there.

`synthetic.csv`, `measurements.json`, `model.npz`, `run.json` and `report.html` appear together, after everything has been
written: a run that ends early leaves its events and its log, never half a table. All five are functions of the release and
of public facts; what only this party knows (clamped values, missing counts, its own row count) stays in its log.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.release import Release

if TYPE_CHECKING:
    from synth.domain import Domain

TABLE = "synthetic.csv"
FILES = (TABLE, "measurements.json", "model.npz", "run.json", "report.html")


def write_outputs(directory: Path, release: Release, domain: Domain, run: dict[str, Any]) -> None:
    """Write all files of a finished run into `directory`; `run` is the content of run.json."""
    from runner.report import render

    with tempfile.TemporaryDirectory(prefix=".partial-", dir=directory) as name:
        staging = Path(name)
        write_table(staging / TABLE, release, domain)
        (staging / "measurements.json").write_text(json.dumps({
            "columns": dict(domain.sizes),
            "noisy_total": release.noisy_total,
            "measurements": [{"clique": list(m.clique), "sigma2": f"{m.sigma2.numerator}/{m.sigma2.denominator}",
                              "round": m.round, "values": m.values.tolist()} for m in release.measurements],
        }) + "\n", encoding="utf-8")
        (staging / "model.npz").write_bytes(release.model)
        (staging / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        shutil.copyfile(directory / "events.jsonl", staging / "events.jsonl")
        render(staging)
        for file in FILES:
            os.replace(staging / file, directory / file)


def remove_outputs(directory: Path) -> None:
    """Take an earlier run's files away before a new run starts, so that what is there always belongs to one run."""
    for file in FILES:
        (directory / file).unlink(missing_ok=True)


def write_table(path: Path, release: Release, domain: Domain) -> None:
    """Write the synthetic rows as CSV: codes as integers, or decoded values; a missing value is an empty field."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(release.decode_seed)
    arrays = [pa.array(column.decode(release.codes[:, j], rng)) for j, column in enumerate(domain.columns)]
    with path.open("wb") as file:
        csv.write_csv(pa.table(arrays, names=list(domain.names)), file, csv.WriteOptions(quoting_style="needed"))
