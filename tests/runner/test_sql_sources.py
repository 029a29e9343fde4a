"""Custodians who export nothing: a run whose tables lie in PostgreSQL, in a CSV and in a Parquet file, with
real processes.

What is measured must be the counts of the same rows in CSV files, as plain Python counts them, but for the
noise. (That the local counts are equal to the last row: `tests/parties/test_postgres.py`.) False alarms:
below 1e-8 per execution of this file.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import duckdb
import pytest
from scipy import stats

from runner.commands.cli import main
from tests.postgres import PASSWORD, Postgres
from tests.runner import small, split
from tests.runner.folders import Folders
from tests.runner.processes import End, results, run

T = TypeVar("T", small.Trial, split.Trial)
QUIET = ("epsilon = 4.0", "epsilon = 4000.0")


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    yield postgres
    postgres.execute("DROP SCHEMA IF EXISTS clinic CASCADE")


TYPES = {
    "sick": "text",
    "grade": "smallint",
    "income": "double precision",
    "work": "varchar(10)",
    "age": "integer",
    "remark": "text",
    "person": "char(12)",
}


def move(server: Postgres, trial: small.Trial | split.Trial, name: str) -> str:
    """The party's CSV becomes a table of the server and is gone. Returns its new `data`."""
    file = trial.path.parent / f"{name}.csv"
    with file.open(newline="") as text:
        columns = ", ".join(f"{column} {TYPES[column]}" for column in next(csv.reader(text)))
    server.execute("CREATE SCHEMA clinic", f"CREATE TABLE clinic.people ({columns})")
    with (
        server.connect() as connection,
        connection.cursor().copy("COPY clinic.people FROM STDIN (FORMAT csv, HEADER)") as copy,
    ):
        copy.write(file.read_bytes())
    file.unlink()
    return f'{{ url = "{server.url()}", table = "clinic.people" }}'


def to_parquet(trial: small.Trial | split.Trial, name: str) -> str:
    file = trial.path.parent / f"{name}.csv"
    with file.open(newline="") as text:
        numbers = [column for column in next(csv.reader(text)) if column in ("age", "income")]
    with duckdb.connect() as database:
        changed = (
            f"REPLACE ({', '.join(f'{column}::DOUBLE AS {column}' for column in numbers)})" if numbers else ""
        )
        database.execute(
            f"COPY (SELECT * {changed} FROM read_csv('{file}', all_varchar = true)) TO "
            f"'{file.with_suffix('.parquet')}' (FORMAT parquet)"
        )
    file.unlink()
    return f'"{name}.parquet"'


def mixed(server: Postgres, trial: T) -> T:
    """north in the database, south in a CSV file, west in a Parquet file."""
    text = trial.path.read_text()
    for name, data in (("north", ""), ("west", f"data = {to_parquet(trial, 'west')}")):
        assert f'data = "{name}.csv"' in text
        text = text.replace(f'data = "{name}.csv"', data)
    trial.path.write_text(text)
    private_of(trial).write_text(f"data = {move(server, trial, 'north')}\n")
    return trial


def private_of(trial: small.Trial | split.Trial) -> Path:
    """The private file of north, whose table a server has."""
    return trial.path.parent / "north.toml"


def assert_true(trial: small.Trial | split.Trial, out: Path) -> None:
    """Every measured marginal is that of the rows as they were written to CSV files at first, but for noise
    of sigma < 1.5."""
    squares = []
    for each in json.loads((out / "measurements.json").read_text())["measurements"]:
        true = trial.marginal(each["clique"])
        assert Fraction(each["sigma2"]) < 2 and len(each["values"]) == len(true)
        squares += [
            (noisy - count) ** 2 / Fraction(each["sigma2"])
            for noisy, count in zip(each["values"], true, strict=True)
        ]
    assert len(squares) >= 20 and sum(squares) < stats.chi2.isf(1e-9, len(squares))


def assert_silent(root: Path, *but: str) -> None:
    """No file below tells the password, in any spelling."""
    for file in root.rglob("*"):
        if file.is_file() and file.name not in but:
            content = file.read_bytes()
            for spelling in (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD), "SECRET-42"):
                assert spelling.encode() not in content, file


def launched(study: Path, tmp_path: Path) -> End:
    """All parties of the study on this machine."""
    return run(
        "run",
        study,
        "--private",
        f"north={study.parent / 'north.toml'}",
        "--out",
        tmp_path / "out",
        ledger=tmp_path / "ledger.db",
        scratch=tmp_path / "scratch",
    )


def test_a_database_a_csv_and_a_parquet_file_on_one_machine(tmp_path: Path, server: Postgres) -> None:
    trial = mixed(server, small.write(tmp_path / "study", changes=[QUIET]))
    end = launched(trial.path, tmp_path)
    assert end.code == 0 and end.complaint == "", end
    assert_true(trial, tmp_path / "out")
    assert_silent(tmp_path, "north.toml")


def test_owners_of_different_columns_join_across_formats(tmp_path: Path, server: Postgres) -> None:
    """The identifiers are char(12) with its blanks here, texts in capitals and with blanks there."""
    trial = mixed(server, split.write(tmp_path / "study", own=split.THREE, changes=[QUIET]))
    end = launched(trial.path, tmp_path)
    assert end.code == 0 and end.complaint == "", end
    assert_true(trial, tmp_path / "out")
    assert_silent(tmp_path, "north.toml")


SQLITE = {
    "sick": "text",
    "grade": "integer",
    "income": "double",
    "work": "text",
    "age": "integer",
    "remark": "text",
}


def to_sqlite(trial: small.Trial, name: str) -> None:
    """The party's CSV becomes a table of a SQLite database, counted where it is."""
    pytest.importorskip("sqlalchemy")
    file = trial.path.parent / f"{name}.csv"
    with (
        closing(sqlite3.connect(file.with_suffix(".sqlite"))) as database,
        database,
        file.open(newline="") as text,
    ):
        header, *rows = csv.reader(text)
        database.execute(f"CREATE TABLE people ({', '.join(f'{one} {SQLITE[one]}' for one in header)})")
        database.executemany(
            f"INSERT INTO people VALUES ({', '.join('?' * len(header))})",
            [[field or None for field in row] for row in rows],
        )
    file.unlink()
    study = trial.path.read_text()
    assert f'data = "{name}.csv"' in study
    inside = f'data = {{ url = "sqlite://{name}.sqlite", table = "people", push_down = true }}'
    trial.path.write_text(study.replace(f'data = "{name}.csv"', inside))


def test_check_and_plan_of_a_table_that_stays_in_its_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path / "study", changes=[QUIET])
    to_sqlite(trial, "north")
    assert main(["check", str(trial.path)]) == 0
    told = capsys.readouterr().out
    assert "north: its table fits the study" in told
    assert main(["plan", str(trial.path)]) == 0
    assert "of north are counted inside their databases" in capsys.readouterr().out
    with closing(sqlite3.connect(trial.path.parent / "north.sqlite")) as database, database:
        database.execute("UPDATE people SET work = 'SECRET-42' WHERE rowid = 7")
    assert main(["check", str(trial.path)]) == 30
    refused = capsys.readouterr()
    assert 'column "work": the value is not one of those declared' in refused.out + refused.err
    assert "SECRET" not in refused.out + refused.err


@pytest.mark.campaign
def test_a_run_whose_tables_stay_in_their_databases(tmp_path: Path, server: Postgres) -> None:
    """PostgreSQL, a CSV file and SQLite."""
    trial = small.write(tmp_path / "study", changes=[QUIET])
    data = move(server, trial, "north")
    inside = data.replace(" }", ", push_down = true }")
    trial.path.write_text(trial.path.read_text().replace('data = "north.csv"', ""))
    private_of(trial).write_text(f"data = {inside}\n")
    to_sqlite(trial, "west")
    end = launched(trial.path, tmp_path)
    assert end.code == 0 and end.complaint == "", end
    assert_true(trial, tmp_path / "out")
    assert_silent(tmp_path, "north.toml")


def test_a_servers_table_is_not_joined_by_an_order_that_it_does_not_have(
    tmp_path: Path, server: Postgres
) -> None:
    rows = ('method = "psu"\nvia = "merge3"\nid = "person"', 'method = "row-order"')
    trial = mixed(
        server, split.write(tmp_path / "study", own=split.THREE, aligned=True, changes=[QUIET, rows])
    )
    end = launched(trial.path, tmp_path)
    assert end.code == 30 and "rows have no order" in end.complaint and not results(tmp_path), end


def test_each_party_on_its_own_with_the_address_in_its_private_file(
    tmp_path: Path, server: Postgres, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path / "study", changes=[QUIET])
    folders = Folders.make(tmp_path / "parties", trial)
    (folders["north"] / "north.csv").unlink()
    folders["north"].edit("private.toml", ('data = "north.csv"', f"data = {move(server, trial, 'north')}"))
    assert (
        main(
            [
                "check",
                str(folders["north"] / "study.toml"),
                "--party",
                "north",
                "--private",
                str(folders["north"] / "private.toml"),
            ]
        )
        == 0
    )
    told = capsys.readouterr()
    assert "north: its table fits the study" in told.out and "SECRET" not in told.out + told.err, told.out
    ends = folders.run()
    assert [end.code for end in ends.values()] == [0, 0, 0], ends
    for folder in folders:
        assert_true(trial, folder.out)
    assert_silent(tmp_path / "parties", "private.toml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (quote(PASSWORD, safe=""), "SECRET-42-wrong", "does not admit this user with this password"),
        ("clinic.people", "clinic.patients", "does not exist in this database"),
        ('clinic.people"', 'clinic.nulls"', 'column "grade", row 1: the value is missing'),
    ],
)
def test_what_the_database_refuses_ends_the_run_with_30(
    tmp_path: Path, server: Postgres, old: str, new: str, words: str
) -> None:
    trial = mixed(server, small.write(tmp_path / "study", changes=[QUIET]))
    server.execute(
        "CREATE VIEW clinic.nulls AS SELECT sick, NULL::integer AS grade, income, work, age FROM clinic.people"
    )
    text = private_of(trial).read_text()
    assert old in text
    private_of(trial).write_text(text.replace(old, new))
    end = launched(trial.path, tmp_path)
    assert end.code == 30 and words in end.complaint and end.complaint.count("\n") == 1, end
    assert "SECRET" not in end.complaint + end.output and not results(tmp_path)
    assert_silent(tmp_path, "north.toml")
