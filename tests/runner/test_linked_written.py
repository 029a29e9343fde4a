"""Linked tables whose CSV files have other marks in their numbers are read as those that have points."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from runner.commands.cli import main
from runner.review.evaluation.linked_rows import real_tables
from runner.study import load, private_file
from tests.runner import linked

CLEAR = ('backend = "replicated"', 'backend = "ideal"')
WIDE = ("high = 9, bins = 3", "high = 9000, bins = 900")


def test_marks_in_numbers_hold_for_all_linked_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = linked.write(tmp_path, changes=[CLEAR, WIDE])
    study = load(trial.path)
    plain = study.parties[0].data
    assert plain is not None and plain.children is not None and plain.path is not None
    marked = tmp_path / "marked"
    marked.mkdir()
    rows = list(csv.reader(plain.children["visits"].path.open(newline="")))  # type: ignore[union-attr]
    place = rows[0].index("cost")
    german = [rows[0]]
    for row in rows[1:]:
        amount = f"{int(row[place]) * 1000.5:.2f}" if row[place] else ""
        row[place] = amount
        written = f"{float(amount):,.2f}".translate(str.maketrans(",.", ".,")) if amount else ""
        german.append([*row[:place], written, *row[place + 1 :]])
    for path, table, delimiter in (
        (plain.children["visits"].path, rows, ","),
        (marked / "visits.csv", german, ";"),
        (marked / "patients.csv", list(csv.reader(plain.path.open(newline=""))), ";"),
    ):
        with path.open("w", newline="") as file:  # type: ignore[union-attr]
            csv.writer(file, delimiter=delimiter).writerows(table)
    own = tmp_path / "north.toml"
    own.write_text(
        f'data = {{ patients = "{marked}/patients.csv", visits = "{marked}/visits.csv" }}\n'
        '[csv]\ndelimiter = ";"\ndecimal = ","\nthousands = "."\n'
    )
    assert main(["check", str(trial.path), "--private", f"north={own}"]) == 0, capsys.readouterr().out
    private = private_file.load(own)
    assert private.data is not None
    there = real_tables(private.data, study, private.rules)
    here = real_tables(dataclasses.replace(plain, tables=None), study, None)
    assert np.array_equal(here.people, there.people)
    one, other = here.children["visits"], there.children["visits"]
    assert np.array_equal(one.codes, other.codes) and np.array_equal(one.person, other.person)
    assert max(len(np.unique(column)) for column in one.codes.T) >= 10  # amounts far apart
    own.write_text(own.read_text().replace('thousands = "."\n', ""))
    assert main(["check", str(trial.path), "--private", f"north={own}"]) == 30
    assert "its digits stand in groups" in capsys.readouterr().out
