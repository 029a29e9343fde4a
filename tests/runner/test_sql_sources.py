"""Custodians who export nothing: a run whose tables lie in PostgreSQL, in a CSV and in a Parquet file, with real processes.

What is measured must be the counts of the same rows in CSV files, as plain Python counts them, but for the noise. (That the local
counts are equal to the last row: `tests/parties/test_postgres.py`.) False alarms: below 1e-8 per execution of this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest
from scipy import stats

from runner.cli import main
from tests.postgres import PASSWORD, Postgres
from tests.runner import small
from tests.runner.folders import Folders
from tests.runner.processes import results, run

QUIET = ("epsilon = 4.0", "epsilon = 4000.0")


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    yield postgres
    postgres.execute("DROP SCHEMA IF EXISTS clinic CASCADE")


def move(server: Postgres, trial: small.Trial, name: str) -> str:
    """The party's CSV becomes a table of the server and is gone. Returns its new `data`."""
    server.execute("CREATE SCHEMA clinic", "CREATE TABLE clinic.people (sick text, grade smallint, income double precision, "
                   "work varchar(10), age integer, remark text)")
    file = trial.path.parent / f"{name}.csv"
    with server.connect() as connection, connection.cursor().copy("COPY clinic.people FROM STDIN (FORMAT csv, HEADER)") as copy:
        copy.write(file.read_bytes())
    file.unlink()
    return f'{{ url = "{server.url()}", table = "clinic.people" }}'


def to_parquet(trial: small.Trial, name: str) -> str:
    file = trial.path.parent / f"{name}.csv"
    with duckdb.connect() as database:
        database.execute("COPY (SELECT age::INTEGER AS age, work, income::DOUBLE AS income, grade::TINYINT AS grade, sick FROM "
                         f"read_csv('{file}', all_varchar = true)) TO '{file.with_suffix('.parquet')}' (FORMAT parquet)")
    file.unlink()
    return f'"{name}.parquet"'


def mixed(directory: Path, server: Postgres) -> small.Trial:
    """north in the database, south in a CSV file, west in a Parquet file."""
    trial = small.write(directory, changes=[QUIET])
    text = trial.path.read_text()
    for name, data in (("north", move(server, trial, "north")), ("west", to_parquet(trial, "west"))):
        assert f'data = "{name}.csv"' in text
        text = text.replace(f'data = "{name}.csv"', f"data = {data}")
    trial.path.write_text(text)
    return trial


def assert_true(trial: small.Trial, out: Path) -> None:
    """Every measured marginal is that of the rows as they were written to CSV files at first, but for noise of sigma below 1."""
    squares = []
    for each in json.loads((out / "measurements.json").read_text())["measurements"]:
        true = trial.marginal(each["clique"])
        assert Fraction(each["sigma2"]) < 1 and len(each["values"]) == len(true)
        squares += [(noisy - count) ** 2 / Fraction(each["sigma2"]) for noisy, count in zip(each["values"], true, strict=True)]
    assert len(squares) >= 20 and sum(squares) < stats.chi2.isf(1e-9, len(squares))


def assert_silent(root: Path, *but: str) -> None:
    """No file below tells the password, in any spelling."""
    for file in root.rglob("*"):
        if file.is_file() and file.name not in but:
            content = file.read_bytes()
            for spelling in (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD), "SECRET-42"):
                assert spelling.encode() not in content, file


def test_a_database_a_csv_and_a_parquet_file_on_one_machine(tmp_path: Path, server: Postgres) -> None:
    trial = mixed(tmp_path / "study", server)
    end = run("run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert_true(trial, tmp_path / "out")
    assert_silent(tmp_path, "study.toml")


def test_each_party_on_its_own_with_the_address_in_its_private_file(tmp_path: Path, server: Postgres,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path / "study", changes=[QUIET])
    folders = Folders.make(tmp_path / "parties", trial)
    (folders["north"] / "north.csv").unlink()
    folders["north"].edit("private.toml", ('data = "north.csv"', f"data = {move(server, trial, 'north')}"))
    assert main(["check", str(folders["north"] / "study.toml"), "--party", "north",
                 "--private", str(folders["north"] / "private.toml")]) == 0
    told = capsys.readouterr()
    assert "north: its table fits the study" in told.out and "SECRET" not in told.out + told.err, told.out
    ends = folders.run()
    assert [end.code for end in ends.values()] == [0, 0, 0], ends
    for folder in folders:
        assert_true(trial, folder.out)
    assert_silent(tmp_path / "parties", "private.toml")


@pytest.mark.parametrize(("old", "new", "words"), [
    (quote(PASSWORD, safe=""), "SECRET-42-wrong", "does not admit this user with this password"),
    ("clinic.people", "clinic.patients", "does not exist in this database"),
    ('clinic.people"', 'clinic.nulls"', 'column "grade", row 1: the value is missing'),
])
def test_what_the_database_refuses_ends_the_run_with_30(tmp_path: Path, server: Postgres, old: str, new: str, words: str) -> None:
    trial = mixed(tmp_path / "study", server)
    server.execute("CREATE VIEW clinic.nulls AS SELECT sick, NULL::integer AS grade, income, work, age FROM clinic.people")
    text = trial.path.read_text()
    assert old in text
    trial.path.write_text(text.replace(old, new))
    end = run("run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 30 and words in end.complaint and end.complaint.count("\n") == 1, end
    assert "SECRET" not in end.complaint + end.output and not results(tmp_path)
    assert_silent(tmp_path, "study.toml")
