"""Tiny studies of linked tables with real data for tests of whole runs: patients, and their visits in order.

    trial = linked.write(tmp_path)                                  # three custodians, each with both tables
    trial = linked.write(tmp_path, vertical=True)                   # north has patients, south their visits, west computes
    trial = linked.write(tmp_path, changes=[("max_rows = 4", "max_rows = 2")])
    trial = linked.write(tmp_path, drugs=True)                      # visits have drugs, of their own key

Some patients have no visits, some more than the study allows. `Trial.marginal` counts what does not depend on
which visit is drawn, by plain Python, as an oracle that shares no code with the product.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from tests.worlds.ports import free_ports

NAMES = ("north", "south", "west")
DIAGNOSES = "uvw"
MOST = 4
SIZES = {"age": 4, "sex": 2, "visits_count": MOST + 1}

STUDY = """\
[study]
name = "clinic"
algorithm = "mosaic"
backend = "replicated"
partition = "horizontal"

[privacy]
epsilon = 4.0
delta = 1e-6
adjacency = "replace"
max_rows = 4096

[domain.columns]
age = { kind = "integer", low = 0, high = 3 }
sex = { kind = "categorical", values = ["f", "m"] }

[table.visits]
parent = "patients"
key = "pid"
max_rows = 4
order = "day"

[table.visits.columns]
day = { kind = "date", low = 2024-01-01, high = 2024-12-31, step = "month" }
diag = { kind = "categorical", values = ["u", "v", "w"] }
cost = { kind = "numeric", low = 0, high = 9, bins = 3, missing = true }

[session]
connect_s = 300
silence_s = 200
"""
JOINED = """
[alignment]
method = "psu"
via = "merge3"
id = "pid"
population = "intersection"
min_size = 20
"""
DRUGS = """[table.drugs]
parent = "visits"
key = "vid"
max_rows = 3

[table.drugs.columns]
drug = { kind = "categorical", values = ["x", "y", "z"] }
dose = { kind = "integer", low = 1, high = 4 }

[session]"""
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Trial:
    """A study on disk, and all patients, visits and drugs that were written."""

    path: Path
    patients: Rows
    visits: Rows
    drugs: Rows

    def marginal(self, clique: Sequence[str]) -> list[int]:
        """Counts of people, of columns that do not depend on a draw, row-major."""
        many = Counter(row["pid"] for row in self.visits)
        cells = Counter(
            tuple(
                min(many[row["pid"]], MOST)
                if name == "visits_count"
                else int(row["age"])
                if name == "age"
                else "fm".index(row["sex"])
                for name in clique
            )
            for row in self.patients
        )
        return [cells[cell] for cell in product(*(range(SIZES[name]) for name in clique))]


def people(prefix: str, seed: int, count: int) -> tuple[Rows, Rows]:
    """A custodian's patients and their visits, which stand in no order."""
    rng = np.random.default_rng(seed)
    patients: Rows = []
    visits: Rows = []
    for number in range(count):
        age, pid = int(rng.integers(0, 4)), f"{prefix}{number}"
        patients.append({"pid": pid, "age": str(age), "sex": "fm"[int(rng.integers(0, 2))]})
        diag = DIAGNOSES[int(rng.integers(0, 3))]
        for _ in range(int(rng.poisson(0.5 + 0.7 * age))):
            diag = diag if rng.random() < 0.7 else DIAGNOSES[int(rng.integers(0, 3))]
            day = f"2024-{int(rng.integers(1, 13)):02}-{int(rng.integers(1, 28)):02}"
            cost = "" if rng.random() < 0.1 else str(int(rng.integers(0, 10)))
            visits.append({"pid": pid, "day": day, "diag": diag, "cost": cost})
    rng.shuffle(visits)
    return patients, visits


def prescribed(visits: Rows, seed: int) -> Rows:
    """The drugs of visits, which get a key: w has most, and each diagnosis a drug of its own more often."""
    rng, found = np.random.default_rng([seed, 1]), Rows()
    for number, visit in enumerate(visits):
        visit["vid"] = f"{visit['pid']}.{number}"
        for _ in range(int(rng.integers(0, 2 + DIAGNOSES.index(visit["diag"])))):
            drug = "xyz"[DIAGNOSES.index(visit["diag"]) if rng.random() < 0.6 else int(rng.integers(0, 3))]
            found.append({"vid": visit["vid"], "drug": drug, "dose": str(int(rng.integers(1, 5)))})
    rng.shuffle(found)
    return found


def write_csv(path: Path, rows: Rows, names: Sequence[str]) -> None:
    """A file with these columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write(
    directory: Path,
    *,
    count: int = 200,
    vertical: bool = False,
    drugs: bool = False,
    changes: Sequence[tuple[str, str]] = (),
    data: Mapping[str, str] | None = None,
) -> Trial:
    """Write study.toml and the custodians' tables. changes: texts of the study to replace. data: a party's
    own `data` line."""
    directory.mkdir(parents=True, exist_ok=True)
    text, patients, visits, prescriptions = STUDY, Rows(), Rows(), Rows()
    if drugs:
        text = text.replace("[session]", DRUGS)
    header = ("pid", *(["vid"] if drugs else []), "day", "diag", "cost")
    if vertical:
        text = text.replace('"horizontal"', '"vertical"') + JOINED
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    for number, (name, port) in enumerate(zip(NAMES, free_ports(3), strict=True)):
        own, theirs = people(name[0], number, count)
        patients, visits = patients + own, visits + theirs
        also = prescribed(theirs, number) if drugs else []
        prescriptions += also
        tables = ("patients", "visits", *(["drugs"] if drugs else []))
        line = "data = { " + ", ".join(f'{one} = "{name}_{one}.csv"' for one in tables) + " }"
        if not vertical:
            write_csv(directory / f"{name}_patients.csv", own, ("pid", "age", "sex"))
            write_csv(directory / f"{name}_visits.csv", theirs, header)
            if drugs:
                write_csv(directory / f"{name}_drugs.csv", also, ("vid", "drug", "dose"))
        else:
            line = {
                "north": 'data = "patients.csv"\ncolumns = ["age", "sex"]',
                "south": 'data = { patients = "members.csv", visits = "visits.csv" }\ncolumns = ["visits"]'
                if not drugs
                else 'data = { patients = "members.csv", visits = "visits.csv", drugs = "drugs.csv" }\n'
                'columns = ["visits", "drugs"]',
            }.get(name, "")
        line = (data or {}).get(name, line)
        text += f'\n[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n{line}\n'
    if vertical:
        write_csv(directory / "patients.csv", patients, ("pid", "age", "sex"))
        write_csv(directory / "members.csv", patients[::-1], ("pid",))
        write_csv(directory / "visits.csv", visits, header)
        write_csv(directory / "drugs.csv", prescriptions, ("vid", "drug", "dose"))
    path = directory / "study.toml"
    path.write_text(text, encoding="utf-8")
    return Trial(path, patients, visits, prescriptions)
