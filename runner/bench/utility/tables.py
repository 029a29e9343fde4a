"""The tables of `bench utility`: what a folder holds.

    NAME.csv with NAME-domain.json       integer codes with a header, and the number of codes of each column, in order
    NAME.bif                             20,000 rows drawn from a Bayesian network (`networks`)

A table with a label is split: 90 % of its rows are used, the others judge the predictions (seed 571, as FLAIM
splits Adult).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, UsageError
from parties.data.libraries import pd
from runner.bench.utility.networks import Network
from synth.domain import Categorical, Codes, Domain
from synth.workload import Workload

LABELS = {"adult": "income>50K", "adult-b32": "income>50K"}
SPLIT_SEED, SHARE = 571, 0.9
DRAWN_ROWS, DRAWN_SEED = 20_000, 1
DEGREE, COUNT, SEED, OTHER_SEED = 3, 64, 123, 7
"""The workload, and the triples that no algorithm is told of."""


@dataclass(frozen=True)
class Table:
    """Rows to be synthesised: codes, int64 (rows, columns). test, label: real rows that are kept apart, and
    what to predict."""

    name: str
    domain: Domain
    codes: NDArray[np.int64]
    test: NDArray[np.int64] | None = None
    label: str | None = None

    @property
    def workload(self) -> Workload:
        """64 random triples."""
        return Workload.from_spec(
            {"degree": min(DEGREE, len(self.domain)), "count": COUNT, "seed": SEED}, self.domain
        )

    def predicting(self, degree: int) -> Workload:
        """64 random sets of this degree with the label in each. Raises `UsageError` for a table without one."""
        if self.label is None:
            raise UsageError(f"The table {self.name} has no label: leave it out, or label=DEGREE.")
        spec = {"degree": degree, "count": COUNT, "seed": SEED, "label": self.label}
        return Workload.from_spec(spec, self.domain)

    @property
    def unseen(self) -> list[tuple[str, ...]]:
        """64 other random triples, less those of the workload."""
        degree = min(DEGREE, len(self.domain))
        other = Workload.from_spec({"degree": degree, "count": COUNT, "seed": OTHER_SEED}, self.domain)
        return [clique for clique in other.cliques if clique not in self.workload.cliques]

    def first(self, rows: int) -> Table:
        """With so many of its rows, drawn with a fixed seed: a small table of the same kind."""
        chosen = np.random.default_rng(rows).permutation(len(self.codes))[:rows]
        return Table(f"{self.name}@{rows}", self.domain, self.codes[chosen], self.test, self.label)


def names(directory: Path) -> list[str]:
    """Names of the tables in a folder. Raises `UsageError` if there is no such folder."""
    if not directory.is_dir():
        raise UsageError(
            f"--data {directory} is no folder: give one with NAME.csv and NAME-domain.json, or NAME.bif."
        )
    suffix = "-domain.json"
    found = {p.name[: -len(suffix)] for p in directory.glob(f"*{suffix}")} | {
        p.stem for p in directory.glob("*.bif")
    }
    return sorted(found)


def read(directory: Path, name: str) -> Table | None:
    """A table by name, NAME@ROWS for the first rows; None if the folder lacks it. Raises `DataRefused` if it
    is damaged."""
    base, _, rows = name.partition("@")
    table = _read(directory, base)
    return table if table is None or not rows else table.first(int(rows))


def chosen(directory: Path, wanted: Sequence[str]) -> tuple[list[Table], list[str]]:
    """(the tables, names of those that are not there)."""
    found = {name: read(directory, name) for name in wanted}
    return [table for table in found.values() if table], [name for name, table in found.items() if not table]


def _read(directory: Path, name: str) -> Table | None:
    csv, domain_file, network = (directory / f"{name}{suffix}" for suffix in (".csv", "-domain.json", ".bif"))
    if csv.is_file() and domain_file.is_file():
        sizes = json.loads(domain_file.read_text(encoding="utf-8"))
        domain = Domain(tuple(sizes), tuple(Codes(size) for size in sizes.values()))
        frame = pd.read_csv(csv)
        if missing := [column for column in sizes if column not in frame]:
            raise DataRefused(f"{csv} lacks the column {missing[0]} that {domain_file.name} declares.")
        frame = frame[list(sizes)]
        if (frame.min().lt(0) | frame.max().ge(list(sizes.values()))).any():
            raise DataRefused(f"{csv} holds codes outside the sizes that {domain_file.name} declares.")
        label = LABELS.get(name)
        if label is None or label not in sizes:
            return Table(name, domain, frame.to_numpy(np.int64))
        used = frame.sample(frac=SHARE, random_state=SPLIT_SEED)
        return Table(name, domain, used.to_numpy(np.int64), frame.drop(used.index).to_numpy(np.int64), label)
    if network.is_file():
        model = Network.read(network)
        domain = Domain(tuple(model.values), tuple(Categorical(of) for of in model.values.values()))
        return Table(name, domain, model.sample(DRAWN_ROWS, np.random.default_rng(DRAWN_SEED)))
    return None
