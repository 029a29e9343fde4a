"""Rows of a person where databases differ: the empty text, types of single values, tables without a snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from parties.data.location import Location, locate
from parties.data.source import Source
from parties.data.sql import server
from parties.data.sql.grouping import named
from parties.data.sql.kinds import Kind
from parties.data.sql.products import PRODUCTS
from synth.domain import Categorical, Column, Domain
from tests.parties.data.sql.databases import pushed
from tests.parties.data.sql.golden import FOLDER, dialect

TEXT = Kind("text", "varchar")


@pytest.fixture(autouse=True)
def library() -> None:
    pytest.importorskip("sqlalchemy")


def table(folder: Path, columns: str, rows: Sequence[Sequence[Any]]) -> Location:
    with sqlite3.connect(folder / "t.sqlite") as database:
        database.execute(f"CREATE TABLE people ({columns})")
        database.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(rows[0]))})", rows)
    database.close()
    return locate({"url": f"sqlite://{folder}/t.sqlite", "table": "people"})


def counted(location: Location, column: Column, unit: tuple[str, int] | None = None) -> list[int]:
    with open_source(location) as source:
        found = count(source, Domain(("x",), (column,)), [("x",)], max_rows=9, unit=unit)
    return [int(each) for each in found.counts([("x",)])[0]]


def test_oracle_never_compares_an_identifier_with_the_empty_text() -> None:
    """There it is NULL: the comparison is true of no row and false of none, and so is what is built of it."""
    for each in server.unit_statements(named("people"), "ID", TEXT, PRODUCTS["oracle"], 1):
        text = each.compile(dialect=dialect("oracle"))
        assert '"ID" IS ' in str(text) and "" not in text.params.values()
        assert "=" not in str(text) and " OR " not in str(text)
    for each in server.unit_statements(named("people"), "ID", TEXT, PRODUCTS["mssql"], 1):
        assert "" in each.compile(dialect=dialect("mssql")).params.values()
    golden = (FOLDER / "oracle.sql").read_text(encoding="utf-8")
    assert golden.count('"sex") = ') == 4  # F and M, in two statements


@pytest.mark.parametrize("declared", ["INTEGER", "REAL", "TEXT"])
def test_the_empty_text_is_no_person_whatever_sqlite_was_told(tmp_path: Path, declared: str) -> None:
    location = table(tmp_path, f"x TEXT, id {declared}", [("a", 1), ("b", ""), ("b", "")])
    for place in (location, pushed(location)):
        with pytest.raises(DataRefused, match="no value of the unit's id"):
            counted(place, Categorical(("a", "b")), ("id", 2))


@pytest.mark.parametrize(
    ("declared", "rows"),
    [
        ("INTEGER", [("a", 1), ("a", "u")]),
        ("INTEGER", [("a", 1), ("a", b"1")]),
        ("TEXT", [("a", b"u"), ("a", "u")]),
        ("", [("a", 1), ("a", "1")]),
        ("BLOB", [("a", b"u"), ("a", "u")]),
    ],
)
def test_a_person_with_identifiers_of_two_types_is_not_two(
    tmp_path: Path, declared: str, rows: list[tuple[Any, Any]]
) -> None:
    location = table(tmp_path, f"x TEXT, id {declared}", rows)
    for place in (location, pushed(location)):
        with pytest.raises(DataRefused, match=r"not of its column's type|declares no type|cannot be read"):
            counted(place, Categorical(("a", "b")), ("id", 1))


@pytest.mark.parametrize(
    ("declared", "listed", "rows", "cells"),
    [
        ("INTEGER", (1e16, "other"), [10**16, 5], [1, 1]),
        ("REAL", (1e22, "other"), [1e22, 5.0], [1, 1]),
        ("REAL", (1e-7, "other"), [1e-7, 0.5], [1, 1]),
        ("TEXT", (1e16, "other"), ["10000000000000000", "5"], [1, 1]),
    ],
)
def test_a_listed_number_with_an_exponent_is_that_number(
    tmp_path: Path, declared: str, listed: tuple[Any, ...], rows: list[Any], cells: list[int]
) -> None:
    location = table(tmp_path, f"x {declared}", [(row,) for row in rows])
    column = Categorical(listed, other="other")
    assert counted(location, column) == counted(pushed(location), column) == cells


@pytest.mark.parametrize("push_down", [False, True])
def test_rows_are_counted_again_where_there_is_no_snapshot(
    tmp_path: Path, push_down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's second row comes after the first look."""
    location = replace(table(tmp_path, "x TEXT, id TEXT", [("a", "u"), ("b", "v")]), push_down=push_down)
    column, first = Categorical(("a", "b")), Source.units
    asked: list[str] = []

    def units(source: Source, name: str, bound: int) -> tuple[bool, bool]:
        asked.append(name)
        return first(source, name, bound) if len(asked) == 1 else (True, False)

    monkeypatch.setattr(Source, "units", units)
    assert counted(location, column, ("id", 1)) == [1, 1] and asked == ["id"]
    asked.clear()
    monkeypatch.setattr(Source, "outgrown", lambda source, name, bound: source.units(name, bound)[0])
    with pytest.raises(DataRefused, match="has more rows than the study's unit"):
        counted(location, column, ("id", 1))
    assert asked == ["id", "id"]


@pytest.mark.parametrize(
    ("scheme", "again"),
    [("mysql", True), ("mariadb", True), ("snowflake", True), ("bigquery", True), ("oracle", False)],
)
def test_which_databases_are_asked_again(scheme: str, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "units", lambda *_: (True, False))
    source = Source.__new__(Source)
    source.location = locate({"url": f"{scheme}://u@h/db", "table": "people"})
    assert source.outgrown("id", 1) is again
