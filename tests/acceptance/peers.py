"""Synthesizers of others, each in an environment of its own: their pins clash with ours, and they share no
code with us.

A *side* is a script for the other's interpreter: `SIDE FOLDER NUMBER..` reads FOLDER/codes.csv (integer codes
with a header) and FOLDER/study.json (`sizes`: codes of each column; `workload`: cliques), writes
FOLDER/synthetic.csv, and says the CPU seconds that fitting took as its last word.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from runner.bench.utility.tables import Table


@dataclass(frozen=True)
class Made:
    """A table by somebody else. codes: int64 (rows, columns), in the order of the table's domain."""

    codes: NDArray[np.int64]
    cpu_s: float


WALL_PER_CPU_S = 20
"""How long a side may take for each second of CPU that it may: machines are busy, and a side that waits for
ever ends."""


def table_of(
    python: Path,
    side: Path,
    table: Table,
    numbers: Sequence[float],
    limit_s: float,
    wall_s: float | None = None,
) -> Made | None:
    """One run of a side on a table; None if it took longer than it may. limit_s: seconds of CPU. wall_s: of the
    clock; None: WALL_PER_CPU_S for each of CPU. Raises what its process ends with if it fails."""
    columns = list(table.domain.names)
    with tempfile.TemporaryDirectory() as folder:
        study = {"sizes": table.domain.sizes, "workload": table.workload.cliques}
        Path(folder, "study.json").write_text(json.dumps(study), encoding="utf-8")
        pd.DataFrame(table.codes, columns=columns).to_csv(Path(folder, "codes.csv"), index=False)
        try:
            said = subprocess.run(
                [str(python), str(side), folder, *map(str, numbers)],
                check=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=WALL_PER_CPU_S * limit_s if wall_s is None else wall_s,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_CPU, (round(limit_s), round(limit_s) + 5)
                ),
            )
        except subprocess.TimeoutExpired:
            return None
        except subprocess.CalledProcessError as error:
            if error.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                return None
            raise
        codes = pd.read_csv(Path(folder, "synthetic.csv"))[columns].to_numpy(np.int64)
    return Made(codes, float(said.stdout.split()[-1]))
