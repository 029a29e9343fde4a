"""A workbook's first sheet is read as the CSV that it would be exported to; without the extra a sentence says
what to do."""

from __future__ import annotations

import random
import sys
import tempfile
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from parties.data.location import locate
from runner.starting.proposals import place_of, texts_of
from synth.domain import Domain

DOMAIN = Domain.from_spec(
    {
        "columns": {
            "age": {"kind": "integer", "low": 0, "high": 99},
            "smokes": {"kind": "boolean", "missing": True},
        }
    }
)


def workbook(path: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book, draw = openpyxl.Workbook(), random.Random(3)
    sheet = book.active
    sheet.append(["age", "smokes", "seen", "weight", None])
    for number in range(50):
        smokes = None if number % 5 == 0 else draw.random() < 0.3
        sheet.append([20 + number, smokes, datetime(2020, 1, 1 + number % 28), 70.5 + number])
    sheet.append([None] * 4)
    book.create_sheet("another").append(["not", "this"])
    book.save(path)
    return path


def test_the_first_sheet_is_a_table(tmp_path: Path) -> None:
    place = locate(workbook(tmp_path / "t.xlsx"))
    with open_source(place) as source:
        assert source.columns == ("age", "smokes", "seen", "weight")
        counted = count(source, DOMAIN, [("age",), ("smokes",)], max_rows=60)
    assert counted.rows == 50


def test_its_cells_are_the_texts_of_an_export(tmp_path: Path) -> None:
    texts = texts_of(place_of(workbook(tmp_path / "t.xlsx")))
    assert texts.rows == 50 and set(texts.columns["smokes"]) == {"true", "false"}
    assert texts.columns["age"]["20"] == 1 and texts.columns["weight"]["70.5"] == 1
    assert date.fromisoformat(min(texts.columns["seen"])) == date(2020, 1, 1)
    kinds = {one.name: dict(one.keys)["kind"] for one in texts.proposals}
    assert kinds == {"age": "integer", "smokes": "boolean", "seen": "date", "weight": "numeric"}


def test_nothing_of_it_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = locate(workbook(tmp_path / "t.xlsx"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    with open_source(place):
        copies = list((tmp_path / "scratch").glob("*/sheet.csv"))
        assert len(copies) == 1 and copies[0].parent.stat().st_mode & 0o777 == 0o700
    assert not list((tmp_path / "scratch").iterdir())


def test_rows_above_the_names_are_said_to_be_so(tmp_path: Path) -> None:
    pd.DataFrame({"age": [41, 57]}).to_excel(tmp_path / "t.xlsx", index=False, startrow=2)
    with pytest.raises(DataRefused, match="the first row of its first sheet is empty"):
        texts_of(place_of(tmp_path / "t.xlsx"))


def test_what_is_no_workbook_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    (tmp_path / "t.xlsx").write_text("SECRET-42,1\n")
    with pytest.raises(DataRefused, match=r"is not a whole \.xlsx workbook") as refused:
        open_source(locate(tmp_path / "t.xlsx"))
    assert "SECRET" not in str(refused.value) and refused.value.__context__ is None


def test_without_the_extra_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        DataRefused, match=r"openpyxl reads; install it with python -m pip install .*openpyxl"
    ):
        open_source(locate(tmp_path / "t.xlsx"))
