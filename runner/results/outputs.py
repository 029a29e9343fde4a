"""The files a finished run leaves at every party (DESIGN section 8): written beside their final place, then moved there.

`synthetic.csv`, `measurements.json`, `model.npz`, `run.json` and `report.html` appear together, after everything has been
written: a run that ends early leaves its events and its log, never half a table. All five are functions of the release and
of public facts; what only this party knows (clamped values, missing counts, its own row count) stays in its private log.
"""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.results import outdir
from runner.results.release import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain


BLOCK_ROWS = 1 << 16
"""Rows decoded and written at a time."""


def write_outputs(directory: Path, release: Release, domain: Domain, run: dict[str, Any]) -> None:
    """Write all files of a finished run into `directory`; run: the content of run.json."""
    from runner.report import render

    with tempfile.TemporaryDirectory(prefix=outdir.STAGING, dir=directory) as name:
        staging = Path(name)
        write_table(staging / "synthetic.csv", release.codes, domain, release.decode_seed)
        (staging / "measurements.json").write_text(
            json.dumps(
                {
                    "columns": dict(domain.sizes),
                    "noisy_total": release.noisy_total,
                    "measurements": [
                        {
                            "clique": list(m.clique),
                            "sigma2": f"{m.sigma2.numerator}/{m.sigma2.denominator}",
                            "round": m.round,
                            "values": m.values.tolist(),
                        }
                        for m in release.measurements
                    ],
                }
            )
            + "\n",
            encoding="utf-8",
        )
        (staging / "model.npz").write_bytes(release.model)
        (staging / outdir.RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        render(staging)
        outdir.install(staging, directory, run)


def write_table(path: Path, codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> None:
    """Write synthetic rows, (rows, columns) codes, as CSV: codes as integers, or values decoded by the public seed.

    A missing value is an empty field.
    """
    rng = np.random.default_rng(seed)
    # the csv module rather than Arrow, whose arrays of NumPy values load pandas
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(domain.names)
        for start in range(
            0, len(codes), BLOCK_ROWS
        ):  # as Python objects, all rows at once would take ten times the table
            block = codes[start : start + BLOCK_ROWS]
            columns = [column.decode(block[:, j], rng).tolist() for j, column in enumerate(domain.columns)]
            writer.writerows(zip(*columns, strict=True))
