"""Invented people for the examples: `python examples/make_tables.py` writes every table anew, the same each
time.

Nobody's data: the numbers follow a few rules and a seeded generator, which is fit for inventing tables and
for nothing else.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = ("private", "public", "self-employed", "none")
REGIONS = ("north", "south", "west")


def person(rng: random.Random) -> dict[str, str | int]:
    """One person's answers, which depend on one another."""
    age = min(90, 18 + int(rng.expovariate(1 / 24)))
    work = "none" if age > 66 else rng.choices(WORK, (60, 20, 12, 8))[0]
    income = 0 if work == "none" else max(0, int(rng.gauss(24_000 + 500 * min(age, 50), 9_000)))
    return {
        "age": age,
        "work": work,
        "income": income,
        "married": "yes" if rng.random() < min(0.8, (age - 18) / 40) else "no",
    }


def health(rng: random.Random, age: int) -> str:
    """What a hospital knows of somebody of this age."""
    return rng.choices(("well", "chronic", "acute"), (100 - age, age // 2 + 5, 10))[0]


def write(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """A CSV file with a header line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)


def three_custodians(directory: Path) -> None:
    """The same columns about different people: 400 at each custodian."""
    rng = random.Random(2026)
    for name in REGIONS:
        write(
            directory / f"{name}.csv", [person(rng) for _ in range(400)], ("age", "work", "income", "married")
        )


def two_owners(directory: Path) -> None:
    """Different columns about overlapping people: each owner holds about four fifths of 1,200."""
    rng = random.Random(2027)
    people = []
    for number in range(1200):
        someone = person(rng)
        people.append({"person_id": f"P{number:05d}", "health": health(rng, int(someone["age"])), **someone})
    for name, columns in (("hospital", ("age", "health")), ("insurer", ("work", "income", "married"))):
        held = [someone for someone in people if rng.random() < 0.8]
        rng.shuffle(held)
        write(directory / f"{name}.csv", held, ("person_id", *columns))


if __name__ == "__main__":
    three_custodians(HERE / "three_custodians")
    two_owners(HERE / "two_owners")
