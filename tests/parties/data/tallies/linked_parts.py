"""Linked tables of three levels in files, and what one process counts of them: for the tests of engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parties.data.counting.local_marginals import LocalTable, count
from parties.data.linked.opening import open_source
from parties.data.linked.places import LinkedPlaces
from parties.data.location import locate
from parties.data.tallies.counting import Counting
from synth.domain import Domain
from synth.linked.tables import ChildTable, LinkedTables
from tests.parties.data.linked.test_unfold import Fixed

KEY = bytes(range(32))
PEOPLE = Domain.from_spec(
    {
        "columns": {
            "sex": {"kind": "categorical", "values": ["f", "m"]},
            "age": {"kind": "integer", "low": 0, "high": 9},
        }
    }
)
VISITS = Domain.from_spec(
    {"columns": {"diag": {"kind": "categorical", "values": ["p", "q", "r"], "missing": True}, "cost": 9}}
)
DRUGS = Domain.from_spec({"columns": {"drug": 4}})
Table = Mapping[str, pa.Array]


@dataclass(frozen=True)
class World:
    """Three tables, by name: patients (pid, sex, age), visits (pid, vid, day, diag, cost), drugs (vid, drug,
    dose)."""

    tables: Mapping[str, Table]
    linked: LinkedTables

    @property
    def counting(self) -> Counting:
        domain = self.linked.unfolded
        visits, drugs = self.linked.names[1:]
        cliques = [*self.linked.cliques, (f"{visits}_cost", f"{visits}_diag", f"{drugs}_drug")]
        return Counting(b"s" * 32, "trial", domain, cliques, 10**6, (self.linked.key, 1))

    def but(self, name: str, **columns: Any) -> World:
        """With other columns of one table."""
        changed = {key: pa.array(value) for key, value in columns.items()}
        return replace(self, tables={**self.tables, name: {**self.tables[name], **changed}})

    def more(self, name: str, rows: Sequence[Sequence[Any]]) -> World:
        """With more rows of one table."""
        columns = {
            key: pa.array([*values.to_pylist(), *(row[at] for row in rows)], values.type)
            for at, (key, values) in enumerate(self.tables[name].items())
        }
        return replace(self, tables={**self.tables, name: columns})


def linked(order: str | None, dose: str | None, most: int = 3) -> LinkedTables:
    """order, dose: what orders visits and drugs."""
    drugs = ChildTable("drugs", 2, dose, DRUGS)
    return LinkedTables(
        "patients", "pid", PEOPLE, (ChildTable("visits", most, order, VISITS, "vid", (drugs,)),)
    )


def world(people: int, seed: int, tables: LinkedTables, keys: str = "text", crowd: int = 0) -> World:
    """Some people have no visits, some more than stay; visits tie in the order and are alike, some lack a
    diagnosis. keys: "text" or "int". crowd: visits of the first person besides."""
    rng = np.random.default_rng(seed)
    of = np.concatenate([rng.integers(0, max(people, 1), 2 * people), np.zeros(crowd, dtype=np.int64)])
    pids = rng.permutation(10**6)[:people]
    vids = rng.permutation(10 * len(of))[: len(of)] if len(of) else np.zeros(0, dtype=np.int64)
    drugs = rng.integers(0, max(len(of), 1), 2 * len(of))
    diag = [None if code == 3 else "pqr"[code] for code in rng.integers(0, 4, len(of))]

    def keyed(values: Any) -> pa.Array:
        return (
            pa.array(values, pa.int64())
            if keys == "int"
            else pa.array([f"k{one}" for one in values], pa.string())
        )

    return World(
        {
            "patients": {
                "pid": keyed(pids),
                "sex": pa.array(["fm"[code] for code in rng.integers(0, 2, people)], pa.string()),
                "age": pa.array(rng.integers(0, 12, people), pa.int64()),
            },
            "visits": {
                "pid": keyed(pids[of]) if people else keyed([]),
                "vid": keyed(vids),
                "day": pa.array([f"2024-01-{day:02}" for day in rng.integers(1, 6, len(of))], pa.string()),
                "diag": pa.array(diag, pa.string()),
                "cost": pa.array(rng.integers(0, 9, len(of)), pa.int64()),
            },
            "drugs": {
                "vid": keyed(vids[drugs]) if len(of) else keyed([]),
                "drug": pa.array(rng.integers(0, 4, len(drugs)), pa.int64()),
                "dose": pa.array(rng.integers(1, 4, len(drugs)), pa.int64()),
            },
        },
        tables,
    )  # fmt: skip


def written(world: World, folder: Path, files: int, seed: int = 0, kind: str = "parquet") -> dict[str, str]:
    """Each table in so many files, its rows anyhow among them; the patterns, by name."""
    rng, patterns = np.random.default_rng(seed), {}
    for name, columns in world.tables.items():
        table = pa.table(dict(columns))
        at = rng.integers(0, files, table.num_rows)
        for number in range(files):
            part, path = table.filter(pa.array(at == number)), folder / f"{name}-{number}.{kind}"
            if kind == "csv":
                part.to_pandas().to_csv(path, index=False)
            else:
                pq.write_table(part, path)
        patterns[name] = str(folder / f"{name}-*.{kind}")
    return patterns


def by_one_process(world: World, folder: Path) -> LocalTable:
    """The counts of the unfolded table, by the same key of the draws."""
    places = {}
    for name, columns in world.tables.items():
        pq.write_table(pa.table(dict(columns)), folder / f"whole-{name}.parquet")
        places[name] = locate(folder / f"whole-{name}.parquet")
    people = places.pop("patients")
    own = LinkedPlaces(world.linked, places, Fixed(KEY))  # type: ignore[arg-type]
    counting = world.counting
    with open_source(replace(people, linked=own)) as source:
        return count(
            source,
            counting.domain,
            counting.cliques,
            max_rows=counting.max_rows,
            unit=counting.unit,
            allow_empty=True,
        )


def told(local: LocalTable, counting: Counting) -> tuple[object, ...]:
    """All that a custodian's own marginals say, comparable."""
    marginals = local.counts(list(counting.cliques))
    return local.rows, dict(local.clamped), dict(local.absent), [one.tolist() for one in marginals]
