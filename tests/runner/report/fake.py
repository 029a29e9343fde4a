"""Directories that look like finished runs, for the report's tests: invented people, real mechanisms' shapes,
a real model.

Everything is seeded (numpy), so a fake run protects nothing and is the same every time. Noise is rounded
Gaussian here: the report cannot tell, and the exact samplers have their own tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from synth.domain import Categorical, Codes, Domain, Numeric
from synth.mrf import Measurement, fit

PEOPLE = Domain(
    ("age", "work", "schooling", "married", "income", "region"),
    (
        Numeric(17, 90, 24, integral=True),
        Categorical(("Private", "Government", "Own business", "None"), missing=True),
        Codes(16),
        Categorical((True, False)),
        Numeric(0.0, 100_000.0, 20, missing=True),
        Categorical(tuple(f"Region {i}" for i in range(30))),
    ),
)
GROUPS = (("age", "married"), ("schooling", "income"), ("age", "work", "income"))


def people(domain: Domain, rows: int, seed: int = 1) -> NDArray[np.int64]:
    """Codes (rows, columns) in which neighbouring columns depend on one another through a common hidden
    score."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows)
    columns = []
    for j, column in enumerate(domain.columns):
        mixed = hidden * (0.8 - 0.1 * (j % 4)) + rng.normal(size=rows) * 0.7
        columns.append(
            np.clip(np.floor((np.tanh(mixed) + 1) / 2 * column.size), 0, column.size - 1).astype(np.int64)
        )
    return np.stack(columns, axis=1)


def marginal(codes: NDArray[np.int64], domain: Domain, clique: Sequence[str]) -> NDArray[np.int64]:
    """Counts, row-major."""
    shape = [domain.sizes[name] for name in clique]
    places = tuple(codes[:, domain.names.index(name)] for name in clique)
    return np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape)))


def write_run(
    directory: Path,
    *,
    domain: Domain = PEOPLE,
    codes: NDArray[np.int64] | None = None,
    groups: Sequence[tuple[str, ...]] = GROUPS,
    sigma: float = 12.0,
    rounds: int = 60,
    parties: int = 3,
    **changes: Any,
) -> dict[str, Any]:
    """Write the five public files; `changes` replace entries of run.json (a mapping is merged). Returns
    run.json's content."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    codes = people(domain, 3000) if codes is None else codes
    singles = [(name,) for name in domain.names]
    taken = []
    for i, clique in enumerate([*singles, *groups]):
        scale = sigma if i < len(singles) else 0.8 * sigma
        values = marginal(codes, domain, clique) + np.rint(
            rng.normal(scale=scale, size=domain.cells(clique))
        ).astype(np.int64)
        taken.append((clique, scale, max(0, i - len(singles) + 1), values))
    model = fit(
        domain.sizes,
        [Measurement(clique, values, scale**2) for clique, scale, _, values in taken],  # type: ignore[arg-type]
        iterations=rounds,
    )
    (directory / "model.npz").write_bytes(model.to_bytes())
    rows = max(1, round(model.total))
    drawn = model.sample(rows, rng)
    arrays = [pa.array(_spelled(column.decode(drawn[:, j], rng))) for j, column in enumerate(domain.columns)]
    table = pa.table(arrays, names=list(domain.names))
    csv.write_csv(table, directory / "synthetic.csv", csv.WriteOptions(quoting_style="needed"))
    (directory / "measurements.json").write_text(
        json.dumps(
            {
                "columns": domain.sizes,
                "noisy_total": float(model.total),
                "measurements": [
                    {
                        "clique": list(clique),
                        "sigma2": f"{round(scale**2 * 100)}/100",
                        "round": number,
                        "values": values.tolist(),
                    }
                    for clique, scale, number, values in taken
                ],
            }
        )
    )
    facts = _facts(domain, groups, rows, sigma, parties)
    for key, value in changes.items():
        facts[key] = {**facts[key], **value} if isinstance(value, Mapping) else value
    (directory / "run.json").write_text(json.dumps(facts))
    return facts


def _spelled(values: NDArray[Any]) -> list[Any]:
    return [None if value is None or value != value else value for value in values.tolist()]


def _timeline(groups: int) -> dict[str, list[float]]:
    steps = [("connect", 0.06)] * 6 + [("agree", 0.02)] * 3 + [("input", 0.05)] * 6
    for number in range(groups + 1):
        steps += [("select", 0.08), ("measure", 0.04), ("fit", 0.12 + 0.02 * number)][number == 0 :]
    clock, found = 0.02, dict[str, list[float]]()
    for phase, pause in [*steps, ("sample", 0.15), ("report", 0.1)]:
        found.setdefault(phase, []).append(round(clock, 3))
        clock += pause
    return found


def _facts(
    domain: Domain, groups: Sequence[tuple[str, ...]], rows: int, sigma: float, parties: int
) -> dict[str, Any]:
    columns: list[dict[str, Any]] = []
    for name, column in zip(domain.names, domain.columns, strict=True):
        columns.append({"name": name, **column.to_spec(), "size": column.size})
    first = len(domain.names) / (2 * sigma**2)
    events: list[dict[str, Any]] = [
        {
            "what": "measure",
            "rho": first,
            "cliques": [[name] for name in domain.names],
            "sigma2": str(round(sigma**2)),
        }
    ]
    for group in groups:
        events.append(
            {
                "what": "select",
                "rho": first / 60,
                "epsilon": 0.111,
                "a": 3,
                "sensitivity": 64,
                "candidates": 61,
            }
        )
        events.append(
            {
                "what": "measure",
                "rho": 1 / (2 * (0.8 * sigma) ** 2),
                "cliques": [list(group)],
                "sigma2": f"{round(64 * sigma**2)}/100",
            }
        )
    spent = sum(event["rho"] for event in events)
    names = ("north", "south", "west", "coast", "hills", "lakes")[:parties]
    walls = {
        "connect": (0.36, 0, 9_120),
        "agree": (0.06, 2, 4_210),
        "input": (0.31, 1, 1_890_112),
        "select": (1.21, 190, 14_301_200),
        "measure": (0.84, 121, 6_120_044),
        "fit": (3.31, 0, 0),
        "sample": (0.74, 1, 912_300),
        "report": (0.41, 0, 0),
    }
    computing = {"role": "compute", "bytes_sent": 23_100_000, "bytes_received": 22_800_000, "rounds": 315}
    contributing = {"role": "contribute", "bytes_sent": 1_204_000, "bytes_received": 940_000, "rounds": 2}
    return {
        "study": "people-joint",
        "algorithm": "aim",
        "backend": "replicated",
        "partition": "horizontal",
        "deployment": "one-machine",
        "rows": rows,
        "wall_s": 7.42,
        "version": "0.1.0",
        "started": "2025-11-04T09:31:07+00:00",
        "digest": "5e" * 32,
        "session": "a7" * 32,
        "columns": columns,
        "selected": [list(group) for group in groups],
        "public_study": {
            "privacy": {"unit": "row"},
            "aim": {"rounds": len(groups)},
            "session": {"tls": "mutual"},
        },
        "privacy": {
            "epsilon": 1.0,
            "delta": 1e-5,
            "rho": spent * 1.002,
            "rho_spent": spent,
            "adjacency": "add-remove",
            "unit": "row",
            "beta": 2.3e-15,
            "delta_for_zcdp": 9.999999991e-06,
            "calibrated_epsilon": 1.0,
            "max_rows": 4194304,
            "noisy_total": float(rows),
            "events": events,
        },
        "phases": [
            {"name": name, "wall_s": wall, "rounds": chain, "bytes_sent": sent}
            for name, (wall, chain, sent) in walls.items()
        ],
        "parties": [{"name": name, **(computing if i < 3 else contributing)} for i, name in enumerate(names)],
        "timeline": _timeline(len(groups)),
    }
