"""A table as people have it, with days, a third of zeros, spellings and what is not listed, through a whole
run in the clear."""

from __future__ import annotations

import csv
import json
import random
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from mpc_protocols.errors import UsageError
from runner.api import Run
from runner.commands.cli import main
from tests.runner.studies import head

ROWS = 900
STUDY = (
    head("clinic", degree=1)
    + """\
[aim]
rounds = 1
synthetic_rows = 400

[domain.columns]
visit = { kind = "date", low = 2020-01-01, high = 2020-12-31, step = "month", missing = true }
admitted = { kind = "datetime", low = 2020-01-01T00:00:00, high = 2020-01-02T00:00:00, step = "hour" }
days = { kind = "integer", low = 0, high = 799, bins = 8, zero = true }
cost = { kind = "numeric", low = 1, high = 100000, bins = 5, scale = "log", zero = true }
age = { kind = "numeric", edges = [0, 18, 65, 120], integral = true }
pain = { kind = "ordinal", values = ["none", "some", "much"] }
smokes = { kind = "boolean", missing = true }
ward = { kind = "categorical", values = ["A", "B", "other"], other = "other" }

[[party]]
name = "clinic"
address = "127.0.0.1:7001"
data = "clinic.csv"
"""
)


def write(directory: Path) -> None:
    draw = random.Random(5)
    with (directory / "clinic.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["visit", "admitted", "days", "cost", "age", "pain", "smokes", "ward"])
        for number in range(ROWS):
            nothing = number % 3 == 0
            writer.writerow(
                [
                    "" if number % 9 == 0 else f"2020-{draw.randint(1, 6):02}-{draw.randint(1, 28):02}",
                    f"2020-01-01 {draw.randint(8, 11):02}:30",
                    0 if nothing else draw.randint(1, 799),
                    0 if nothing else round(10 ** draw.uniform(0, 5), 2),
                    draw.randint(18, 64),
                    draw.choice(["none", "some"]),
                    draw.choice(["Yes", "no", ""]),
                    draw.choice(["A", "C", "D"]),
                ]
            )
    (directory / "study.toml").write_text(STUDY)


def test_every_kind_of_column_through_a_run(tmp_path: Path) -> None:
    write(tmp_path)
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(out)]) == 0
    with (out / "synthetic.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 400
    days = [date.fromisoformat(row["visit"]) for row in rows if row["visit"]]
    assert 300 < len(days) < 400 and sum(day.month <= 6 for day in days) > 0.97 * len(days)
    hours = [datetime.fromisoformat(row["admitted"]).hour for row in rows]
    assert all("T" in row["admitted"] for row in rows) and sum(8 <= hour <= 11 for hour in hours) > 380
    assert 100 < sum(row["days"] == "0" for row in rows) < 167  # a third
    assert 100 < sum(float(row["cost"]) == 0 for row in rows) < 167
    assert sum(18 <= int(row["age"]) < 65 for row in rows) > 380
    assert {row["smokes"] for row in rows} == {"True", "False", ""}
    assert (
        220 < sum(row["ward"] == "other" for row in rows) < 310
        and sum(row["ward"] == "B" for row in rows) < 12
    )
    before = (out / "report.html").read_bytes()
    assert main(["report", str(out)]) == 0 and (out / "report.html").read_bytes() == before
    assert b"Exactly 0" in before and b"2020-01-01" in before
    assert main(["sample", str(out), "--rows", "50", "--out", str(tmp_path / "more.parquet")]) == 0
    table = parquet.read_table(tmp_path / "more.parquet")
    assert table.schema.field("visit").type == pa.date32()
    assert table.schema.field("admitted").type in (pa.timestamp("s"), pa.timestamp("ms"))
    assert main(["query", str(out), "days", "ward"]) == 0
    ran = Run(out, json.loads((out / "run.json").read_text()))
    assert set(ran.sample(9, {"ward": "other"})["ward"]) == {"other"}
    with pytest.raises(
        UsageError, match=r"Column ward: 'othr' is not among its values \(did you mean \"other\"\?\)"
    ):
        ran.sample(9, {"ward": ["A", "othr"]})
    frame = ran.synthetic
    assert (
        str(frame["visit"].dtype).startswith("datetime64")
        and frame["pain"].isin(["none", "some", "much"]).all()
    )


def test_a_column_of_names_is_refused_with_advice(tmp_path: Path, capsys: object) -> None:
    write(tmp_path)
    study = tmp_path / "study.toml"
    study.write_text(
        STUDY.replace('smokes = { kind = "boolean", missing = true }', 'smokes = { kind = "text" }')
    )
    assert main(["check", str(study)]) == 10
    assert "free text cannot be synthesised" in "".join(capsys.readouterr())  # type: ignore[attr-defined]
