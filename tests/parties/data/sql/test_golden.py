"""The statements for databases that cannot be run here: what is sent is what was looked at, and another
parser of the dialect finds in it one SELECT of the very names, and nothing of a value."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.parties.data.sql.golden import FOLDER, NOT_RUN, columns, statements, text


@pytest.fixture(
    params=[
        "mssql",
        "oracle",
        pytest.param(
            "snowflake", marks=pytest.mark.campaign
        ),  # their dialects come with drivers of many packages
        pytest.param("bigquery", marks=pytest.mark.campaign),
    ]
)
def name(request: pytest.FixtureRequest) -> str:
    pytest.importorskip("sqlalchemy")
    if request.param == "snowflake":
        pytest.importorskip("snowflake.sqlalchemy")
    if request.param == "bigquery":
        pytest.importorskip("sqlalchemy_bigquery")
    return str(request.param)


def parsed(name: str, sql: str) -> Any:
    sqlglot = pytest.importorskip("sqlglot")
    bare = re.sub(r"%\((\w+)\)s", r":\1", sql).replace("%%", "%")
    (tree,) = sqlglot.parse(bare, dialect=NOT_RUN[name], error_level=sqlglot.ErrorLevel.RAISE)
    return tree


def test_statements_are_those_that_were_looked_at(name: str) -> None:
    """`python -m tests.parties.data.sql.golden` writes them anew."""
    assert text(name) == (FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def test_another_parser_reads_one_select_of_these_names(name: str) -> None:
    from sqlglot import exp

    for compiled in statements(name).values():
        tree = parsed(name, str(compiled.string))
        assert isinstance(tree, exp.Select) and len(list(tree.find_all(exp.Select))) == 2
        (table,) = tree.find_all(exp.Table)
        assert (table.name, table.db) == ("people", "a schema")
        inner = next(select for select in tree.find_all(exp.Select) if select is not tree)
        assert {each.name for each in inner.find_all(exp.Column)} - {"NAN"} == set(columns(name))
        assert not any(
            isinstance(each, exp.Insert | exp.Update | exp.Delete | exp.Drop) for each in tree.walk()
        )


def test_values_travel_beside_the_statement(name: str) -> None:
    for compiled in statements(name).values():
        assert "DROP" not in str(compiled.string) and "slash" not in str(compiled.string)
        assert "b'; DROP TABLE people; --" in compiled.params.values()
        strings = {
            each.this for each in parsed(name, str(compiled.string)).find_all(_literal()) if each.is_string
        }
        assert strings <= {""}, strings


def _literal() -> Any:
    from sqlglot import exp

    return exp.Literal
