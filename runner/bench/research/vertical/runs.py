"""One run of a study whose columns two owners hold, on one machine, and what its table is worth.

The study runs as a user's would, by `runner.run_study`: backend `ideal` (the distribution of the secure ones,
nothing protected) unless told otherwise. Both owners hold all rows, in the same order. Randomness is the
operating system's: two runs differ, and means come with their standard errors.

    tvd1 .. tvd4    mean total variation distance of 300 random sets of so many columns (all, where there are fewer), 0..1
    auc             of a prediction of the label on real rows, trained on the table (`LABELS`; the rows that it was made of, or
                    those kept apart)
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from mpc_protocols.errors import UsageError
from parties.data.libraries import pd
from runner.api import run_study
from runner.bench.utility.tables import Table
from synth.algorithm import ALGORITHMS
from synth.judgement.metrics import total_variation
from synth.judgement.metrics.prediction import auc

DEGREES: Final = (1, 2, 3, 4)
SETS, SETS_SEED = 300, 0
ADJACENCY, BACKEND = "adjacency", "backend"
OWNERS: Final = ("first", "second", "third")
"""The third party computes, or serves, and has no columns."""
DOMAIN: Final = "domain.json"
MIN_ROWS: Final = 1024
"""Of a study: a power of two above the least rows that an alignment asks for."""
LABELS: Final = {"adult-vfl": "income"}


@dataclass(frozen=True)
class Row:
    """A system as it was asked for. options: of its table in the study. adjacency, backend: of the study."""

    text: str
    algorithm: str
    options: Mapping[str, str] = field(default_factory=dict)
    adjacency: str = "add-remove"
    backend: str = "ideal"

    @classmethod
    def parse(cls, text: str) -> Row:
        """Read NAME or NAME:KEY=VALUE; adjacency and backend are keys of any. Raises `UsageError`."""
        name, *parts = text.split(":")
        if name not in ALGORITHMS or "vertical" not in ALGORITHMS[name].partitions:
            known = [each.name for each in ALGORITHMS if "vertical" in each.partitions]
            raise UsageError(
                f"There is no algorithm {name!r} for columns split among owners; there are {', '.join(known)}."
            )
        options = dict(part.partition("=")[::2] for part in parts)
        adjacency, backend = options.pop(ADJACENCY, cls.adjacency), options.pop(BACKEND, cls.backend)
        return cls(text, name, options, adjacency, backend)

    def study(self, table: Table, epsilon: float, delta: float) -> str:
        """The study file; `research` opens the gate for systems that need it."""
        keys = "".join(f"{key} = {_toml(value)}\n" for key, value in self.options.items())
        parties = "".join(
            f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{number + 1}"\n'
            + (f'data = "{name}.csv"\n' if number < len(OWNERS) - 1 else "")
            for number, name in enumerate(OWNERS)
        )
        return (
            f'[study]\nname = "{table.name}"\nalgorithm = "{self.algorithm}"\nbackend = "{self.backend}"\n'
            f'partition = "vertical"\nresearch = true\n'
            f"[privacy]\nepsilon = {epsilon}\ndelta = {delta}\n"
            f'adjacency = "{self.adjacency}"\nmax_rows = {max(1 << len(table.codes).bit_length(), MIN_ROWS)}\n'
            f"[workload]\ndegree = {min(3, len(table.domain))}\n[{self.algorithm}]\n{keys}"
            f'[alignment]\nmethod = "row-order"\nmin_size = 1\n[domain]\nfile = "{DOMAIN}"\n{parties}'
        )


@dataclass(frozen=True)
class Result:
    """Figures of one run. wall_s: with the start of processes."""

    scores: Mapping[str, float]
    wall_s: float


def run(row: Row, table: Table, epsilon: float, delta: float, first: Collection[str] = ()) -> Result:
    """Write the owners' files, run the study, score its table. first: the first owner's columns; none: the
    first half.

    Raises what a run raises.
    """
    names = table.domain.names
    first = first or names[: -(-len(names) // 2)]
    owned = [[name for name in names if (name in first) is of] for of in (True, False)]
    frame = pd.DataFrame(table.codes, columns=list(names))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for owner, columns in zip(OWNERS, owned, strict=False):
            frame[columns].to_csv(folder / f"{owner}.csv", index=False)
        sizes = {name: table.domain[name].size for name in names}
        (folder / DOMAIN).write_text(json.dumps(sizes), encoding="utf-8")
        study = folder / "study.toml"
        study.write_text(row.study(table, epsilon, delta), encoding="utf-8")
        accounts: dict[str, dict[str, Any]] = {owner: {"file": str(folder / "ledger.db")} for owner in OWNERS}
        began = time.perf_counter()
        done = run_study(study, out=folder / "out", ledger=accounts)
        wall_s = time.perf_counter() - began
        synthetic = pd.read_csv(next(done.directory.glob("synthetic*.csv")))[list(names)].to_numpy(np.int64)
    return Result(scores(table, synthetic), wall_s)


def scores(table: Table, synthetic: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, float]:
    """All figures of a synthetic table: codes, int64 (rows, columns)."""
    found = {}
    for degree in DEGREES:
        if degree <= len(table.domain):
            found[f"tvd{degree}"] = total_variation(
                table.codes, synthetic, table.domain, _sets(table, degree)
            )
    label = LABELS.get(table.name.partition("@")[0], table.label)
    if label is not None:
        test = table.codes if table.test is None else table.test
        found["auc"] = auc(synthetic, test, table.domain, label)
    return found


def _sets(table: Table, degree: int) -> list[tuple[str, ...]]:
    """The same for every system."""
    every = list(itertools.combinations(table.domain.names, degree))
    if len(every) <= SETS:
        return every
    chosen = np.random.default_rng(SETS_SEED).choice(len(every), SETS, replace=False)
    return [every[place] for place in chosen]


def _toml(value: str) -> str:
    """A value as the study file says it: a number or truth as it is, else a text."""
    try:
        float(value)
    except ValueError:
        return value if value in ("true", "false") else f'"{value}"'
    return value
