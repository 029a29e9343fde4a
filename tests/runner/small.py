"""Tiny studies with real data for tests of whole runs: five columns, a few hundred rows per custodian,
loopback addresses.

    trial = small.write(tmp_path)                                     # three custodians, all of them compute
    trial = small.write(tmp_path, parties=5, data={"east": None})     # two contributors, one of them without a table
    trial = small.write(tmp_path, changes=[("epsilon = 4.0", "epsilon = 1.0")])

The tables hold everything the coding has to deal with: numbers outside the range, missing values, texts,
integral and fractional numbers, plain codes, columns in another order and one that the study does not use.
`Trial.marginal` counts the pooled rows by plain Python, as an oracle that shares no code with the product.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.runner.studies import head
from tests.worlds.ports import free_ports

NAMES = ("north", "south", "west", "east", "hill", "lake", "moor")
COLUMNS = ("age", "work", "income", "grade", "sick")
AGE, BINS = (20, 80), 6
WORK = ("Private", "Gov", "None")
INCOME, STEPS = (0.0, 10.0), 4
GRADES = 3
SICK = ("no", "yes")
SIZES = {"age": BINS, "work": len(WORK) + 1, "income": STEPS + 1, "grade": GRADES, "sick": len(SICK)}

STUDY = (
    head("trial", backend="replicated", epsilon="4.0")
    + """\
[aim]
rounds = 3

[domain.columns]
age = { kind = "numeric", low = 20, high = 80, bins = 6, integral = true }
work = { kind = "categorical", values = ["Private", "Gov", "None"], missing = true }
income = { kind = "numeric", low = 0, high = 10, bins = 4, missing = true }
grade = 3
sick = { kind = "categorical", values = ["no", "yes"] }

[session]
connect_s = 300
silence_s = 200
"""
)

Row = dict[str, str]


@dataclass(frozen=True)
class Trial:
    """A study on disk: its path, its parties' names in order, its custodians' rows as they were written."""

    path: Path
    names: tuple[str, ...]
    rows: Mapping[str, Any]
    ports: Mapping[str, int]

    @property
    def pooled(self) -> list[Row]:
        """Everybody's rows."""
        return [row for rows in self.rows.values() for row in rows]

    def marginal(self, clique: Sequence[str]) -> list[int]:
        """True counts of the pooled rows, row-major in the clique's order."""
        return counted(self.pooled, clique, SIZES, code)

    def deviations(self, out: Path) -> list[tuple[float, float]]:
        """(noisy - true, sigma) of every cell that a run measured, against counts by plain Python."""
        found: list[tuple[float, float]] = []
        for measured in json.loads((out / "measurements.json").read_text())["measurements"]:
            true, sigma = self.marginal(measured["clique"]), math.sqrt(Fraction(measured["sigma2"]))
            found += [(noisy - count, sigma) for noisy, count in zip(measured["values"], true, strict=True)]
        return found


def counted(
    table: Sequence[Row], clique: Sequence[str], sizes: Mapping[str, int], code: Callable[[str, str], int]
) -> list[int]:
    """Counts of rows of text, row-major; a column that a row lacks is empty."""
    found = Counter(tuple(code(name, row.get(name, "")) for name in clique) for row in table)
    return [found[cell] for cell in product(*(range(sizes[name]) for name in clique))]


def code(name: str, text: str) -> int:
    """The code of one field, by the rules of `docs/reference/study-file.md`, one value at a time."""
    if name == "age":
        return min(max((int(text) - AGE[0]) * BINS // (AGE[1] - AGE[0]), 0), BINS - 1)
    if name == "income":
        return STEPS if text == "" else min(max(int(float(text) / (INCOME[1] / STEPS)), 0), STEPS - 1)
    if name == "work":
        return WORK.index(text) if text else len(WORK)
    return int(text) if name == "grade" else SICK.index(text)


def rows(seed: int, count: int) -> list[Row]:
    """A custodian's rows: related columns; about one age in twenty and some incomes outside the range, some
    fields empty."""
    rng = np.random.default_rng(seed)
    table = []
    for _ in range(count):
        age = int(rng.integers(14, 88))
        sick = rng.random() < (age - 10) / 120
        work = "" if rng.random() < 0.1 else WORK[int(rng.integers(0, 2)) if age < 65 else 2]
        income = "" if rng.random() < 0.15 else f"{rng.normal(3 if work == 'None' else 6, 2.5):.2f}"
        table.append(
            {
                "age": str(age),
                "work": work,
                "income": income,
                "grade": str(int(rng.integers(0, GRADES))),
                "sick": SICK[sick],
            }
        )
    return table


def write_csv(path: Path, table: Sequence[Row]) -> None:
    """The rows as a file: columns in another order than the study's, and one that it does not use."""
    own = [name for name in (table[0] if table else ()) if name not in COLUMNS]
    names = [*reversed(COLUMNS), *own, "remark"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="nothing, really")
        writer.writeheader()
        writer.writerows(table)


def write(
    directory: Path,
    *,
    parties: int = 3,
    count: int = 300,
    changes: Sequence[tuple[str, str]] = (),
    party: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    text: str = STUDY,
) -> Trial:
    """Write study.toml and NAME.csv of every custodian into `directory`.

    changes: texts of the study to replace, each of which must occur. party: further lines of a party's table.
    data: a custodian's own rows, or None for a party without a table. The study names the tables relative to
    itself.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names = NAMES[:parties]
    ports = dict(zip(names, free_ports(parties), strict=True))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    tables: dict[str, list[Row]] = {}
    for number, name in enumerate(names):
        own = rows(number + 1, count) if data is None or name not in data else data[name]
        text += f'\n[[party]]\nname = "{name}"\naddress = "127.0.0.1:{ports[name]}"\n{(party or {}).get(name, "")}\n'
        if own is not None:
            tables[name] = own
            write_csv(directory / f"{name}.csv", own)
            text += f'data = "{name}.csv"\n'
    path = directory / "study.toml"
    path.write_text(text, encoding="utf-8")
    return Trial(path, names, tables, ports)
