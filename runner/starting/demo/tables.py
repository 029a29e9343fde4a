"""The demo's rows: who holds which of them, and the study that they fit.

The people are made up: `survey.csv.gz` is a table that Cosynth itself released
(`runner/starting/demo/README.md` says from what, how and with which epsilon). One row, one person. The rows
are dealt at random to three custodians; with `vertical` most of them are held by each of two owners, in
different columns.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpc_protocols.process.installation import program
from parties.data.libraries import pd

SURVEY = Path(__file__).with_name("survey.csv.gz")
CUSTODIANS = ("north", "south", "west")
STUDIES = {False: "fair-survey-demo", True: "fair-survey-vertical-demo"}
"""The name of the demo's study; by whether it is vertical."""
SPLIT_SEED = 1974  # the year of the survey; a demo is to be the same everywhere

RATING = ("very poor", "poor", "fair", "good", "very good")
RELIGIOUS = ("not", "mildly", "fairly", "strongly")
EDUCATION = (
    "grade school",
    "high school",
    "some college",
    "college graduate",
    "some graduate school",
    "advanced degree",
)
OCCUPATION = (
    "student",
    "farming or unskilled",
    "white-collar",
    "teacher, nurse, artist, skilled",
    "managerial",
    "professional",
)

HEAD = """\
# The study of `{program} demo`: every party holds this same file. `{program} init DIR` writes one with comments.

[study]
name = "{name}"
algorithm = "mosaic"
backend = "replicated"
partition = "{partition}"

[privacy]
epsilon = 1.0
delta = 1e-6
adjacency = "add-remove"
max_rows = 10000

{alignment}[workload]
degree = 2

[mosaic]
rounds = "adaptive"

[domain.columns]
marriage = {{ kind = "categorical", values = {rating} }}
age = {{ kind = "numeric", low = 15, high = 45, bins = 6, integral = true }}
years_married = {{ kind = "numeric", low = 0, high = 24, bins = 8 }}
children = {{ kind = "categorical", values = ["0", "1", "2", "3", "4", "5 or more"] }}
religious = {{ kind = "categorical", values = {religious} }}
education = {{ kind = "categorical", values = {education} }}
occupation = {{ kind = "categorical", values = {occupation} }}
husband_occupation = {{ kind = "categorical", values = {occupation} }}
affair = {{ kind = "categorical", values = ["no", "yes"] }}

[session]
connect_s = 60
silence_s = 10
"""

PARTY = """
[[party]]
name = "{name}"
address = "127.0.0.1:{port}"
"""
ALIGNMENT = """\
[alignment]                # how the two tables are joined: nobody learns who is in both
method = "psu"
id = "person"
population = "intersection"

"""
HOLDINGS = {
    "counsel": ("marriage", "years_married", "children", "religious", "affair"),
    "register": ("age", "education", "occupation", "husband_occupation"),
}
"""The vertical demo's owners and their columns."""
THIRD = "third"
HELD = 0.85
"""The share of the women that each owner holds, at random."""


def survey(path: Path = SURVEY) -> pd.DataFrame:
    """The demo's people, one a row, in the words of the study's domain."""
    with gzip.open(path, "rb") as file:
        return pd.read_csv(file, dtype={"children": str})


def study_text(vertical: bool = False) -> str:
    """The study of the demo, without its parties."""
    return HEAD.format(
        program=program(),
        name=STUDIES[vertical],
        partition="vertical" if vertical else "horizontal",
        alignment=ALIGNMENT if vertical else "",
        rating=json.dumps(RATING),
        religious=json.dumps(RELIGIOUS),
        education=json.dumps(EDUCATION),
        occupation=json.dumps(OCCUPATION),
    )


def prepare(
    directory: Path, ports: Sequence[int], vertical: bool = False, people: pd.DataFrame | None = None
) -> Path:
    """Write the study and the custodians' files into `directory`; returns the study's path.

    people: the rows that three custodians hold; by default the demo's.
    """
    tables = split() if vertical else dealt(survey() if people is None else people)
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(directory / f"{name}.csv", index=False)
    text = study_text(vertical)
    for name, port in zip((*HOLDINGS, THIRD) if vertical else CUSTODIANS, ports, strict=True):
        text += PARTY.format(name=name, port=port) + (f'data = "{name}.csv"\n' if name in tables else "")
    study = directory / "study.toml"
    study.write_text(text, encoding="utf-8")
    return study


def dealt(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every woman at one of three custodians."""
    owner = np.random.default_rng(SPLIT_SEED).integers(len(CUSTODIANS), size=len(rows))
    return {name: rows[owner == number] for number, name in enumerate(CUSTODIANS)}


def split() -> dict[str, pd.DataFrame]:
    """Most women at each of two owners, in another order, under identifiers that the two write differently."""
    rows, rng, tables = survey(), np.random.default_rng(SPLIT_SEED), {}
    for name, columns in HOLDINGS.items():
        held = rng.permutation(np.flatnonzero(rng.random(len(rows)) < HELD))
        people = [f"W-{number:05}" if name == "counsel" else f" w-{number:05}" for number in held]
        tables[name] = rows.iloc[held][list(columns)].assign(person=people)
    return tables


def real_rows(vertical: bool) -> pd.DataFrame:
    """The rows that the synthetic table stands for: everybody, or the women that both owners hold."""
    if not vertical:
        return survey()
    counsel, register = (
        table.assign(person=table["person"].str.strip().str.upper()) for table in split().values()
    )
    return counsel.merge(register, on="person", validate="one_to_one")


def coded(table: pd.DataFrame, domain: Any) -> Any:
    """Codes of a table in the study's words, (rows, columns) in the domain's order."""
    coded = []
    for name, column in zip(domain.names, domain.columns, strict=True):
        coded.append([column.code_of(value) for value in table[name]])
    return np.array(coded, dtype=np.int64).T
