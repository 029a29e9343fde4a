"""Tiny vertical studies with real data for tests of whole runs: five columns of overlapping people, split
among owners.

    trial = split.write(tmp_path)                                              # north and south own, west only computes
    trial = split.write(tmp_path, own=split.THREE, changes=[("merge3", "auto")])

Owners write the same person's identifier in different ways, hold different people in different orders, and
have a column that the study does not use. `Trial.marginal` joins in plain Python, as an oracle that shares no
code with the product.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.runner import small
from tests.runner.studies import head
from tests.worlds.ports import free_ports

COLUMNS = ("age", "work", "income", "grade", "sick")
GRADES = ("low", "mid", "high")
SIZES = {"age": 7, "work": 4, "income": 5, "grade": 4, "sick": 3}
TWO = {"north": ("age", "income"), "south": ("work", "grade", "sick")}
THREE = {"north": ("age", "income"), "south": ("work",), "west": ("grade", "sick")}

STUDY = (
    head("split", backend="replicated", partition="vertical", epsilon="4.0", adjacency="replace")
    + """\
[aim]
rounds = 3

[domain.columns]
age = { kind = "numeric", low = 20, high = 80, bins = 6, integral = true, missing = true }
work = { kind = "categorical", values = ["Private", "Gov", "None"], missing = true }
income = { kind = "numeric", low = 0, high = 10, bins = 4, missing = true }
grade = { kind = "categorical", values = ["low", "mid", "high"], missing = true }
sick = { kind = "categorical", values = ["no", "yes"], missing = true }

[alignment]
method = "psu"
via = "merge3"
id = "person"
population = "intersection"
min_size = 10

[session]
connect_s = 300
silence_s = 200
"""
)

Person = dict[str, str]


@dataclass(frozen=True)
class Trial(small.Trial):
    """A study whose owners hold some columns each. rows: of each owner, by person."""

    union: bool

    @property
    def pooled(self) -> list[Person]:
        """The joined table: what the synthetic one is about. Columns of an owner that lacks the person are
        empty."""
        held = [set(own) for own in self.rows.values()]
        people = set.union(*held) if self.union else set.intersection(*held)
        return [
            {column: text for own in self.rows.values() for column, text in own.get(person, {}).items()}
            for person in sorted(people)
        ]

    def marginal(self, clique: Sequence[str]) -> list[int]:
        return small.counted(self.pooled, clique, SIZES, code)


def code(name: str, text: str) -> int:
    """The code of one field, by the rules of `docs/reference/study-file.md`, one value at a time; the last
    code is a missing value."""
    if text == "":
        return SIZES[name] - 1
    return GRADES.index(text) if name == "grade" else small.code(name, text)


def everybody(seed: int, count: int) -> list[Person]:
    """All people there are, with all their columns."""
    rng = np.random.default_rng(seed)
    found = []
    for row in small.rows(seed, count):
        grade = GRADES[min(2, int(row["age"]) // 30)] if rng.random() < 0.8 else ""
        found.append({**row, "grade": grade})
    return found


def write(
    directory: Path,
    *,
    own: Mapping[str, Sequence[str]] | None = None,
    parties: int = 3,
    count: int = 400,
    share: float = 0.8,
    changes: Sequence[tuple[str, str]] = (),
    party: Mapping[str, str] | None = None,
    text: str = STUDY,
    aligned: bool = False,
    held: Mapping[str, Sequence[int]] | None = None,
    seed: int = 7,
) -> Trial:
    """Write study.toml and NAME.csv of every owner into `directory`.

    own: the owners and their columns. share: of the people, independently at each owner. changes: texts of
    the study to replace, each of which must occur. party: further lines of a party's table. aligned:
    everybody holds the same people in the same order, without identifiers. held: who holds which of the
    people, instead of a random share.
    """
    directory.mkdir(parents=True, exist_ok=True)
    own = TWO if own is None else own
    names = small.NAMES[:parties]
    ports = dict(zip(names, free_ports(parties), strict=True))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    people = everybody(seed, count)
    rng = np.random.default_rng(seed + 1)
    rows: dict[str, dict[str, Person]] = {}
    for name in names:
        text += f'\n[[party]]\nname = "{name}"\naddress = "127.0.0.1:{ports[name]}"\n{(party or {}).get(name, "")}\n'
        if name not in own:
            continue
        chosen = np.flatnonzero(rng.random(count) < share) if held is None else np.array(held[name], int)
        order = range(count) if aligned else rng.permutation(chosen).tolist()
        rows[name] = {f"p-{i:04}": {column: people[i][column] for column in own[name]} for i in order}
        text += f'data = "{name}.csv"\n'
        style = len(rows)
        with (directory / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*own[name], "remark", *([] if aligned else ["person"])])
            for person, values in rows[name].items():
                spelled = (person, person.upper(), f"  {person} ")[style % 3]
                writer.writerow([*values.values(), "nothing, really", *([] if aligned else [spelled])])
    path = directory / "study.toml"
    path.write_text(text, encoding="utf-8")
    return Trial(path, names, rows, ports, 'population = "union"' in text)
