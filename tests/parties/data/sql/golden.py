"""The statements for databases that cannot be run here, as text: `python -m tests.parties.data.sql.golden`
writes them anew.

One table with a column of each kind, whose names and values try to be something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from parties.data.harmony.recipe import Step
from parties.data.sql.grouping import column, relation
from parties.data.sql.kinds import Kind
from parties.data.sql.products import PRODUCTS
from parties.data.sql.server import trimmed
from parties.data.sql.statements import Coded
from parties.data.sql.translation import cases
from synth.domain import Boolean, Categorical, Codes, Column, Date, DateTime, Edged, Numeric

FOLDER = Path(__file__).with_name("golden")
TABLE = '"a schema".people'
COLUMNS: Mapping[str, tuple[Column, Kind, Step]] = {
    "it's": (
        Categorical(
            ("a", "A", "b'; DROP TABLE people; --", "back\\slash", "other"), missing=True, other="other"
        ),
        Kind("text", "varchar"),
        Step("it's", missing=("NA",), values=(("x", "a"),)),
    ),
    "sex": (Categorical(("F", "M")), Kind("text", "char", padded=True), Step("sex")),
    "grade": (Categorical((1, 2.5, "none"), other="none"), Kind("text", "varchar"), Step("grade")),
    'age" --': (
        Numeric(low=18, high=90, bins=3, integral=True, missing=True),
        Kind("integer", "int"),
        Step('age" --'),
    ),
    "dose]": (Edged((0.1, 0.3, 1.1), missing=True), Kind("double", "float"), Step("dose]")),
    "price": (Edged((0, 0.3, 9.5)), Kind("decimal", "decimal", 12, 2), Step("price")),
    "ward": (Codes(4), Kind("integer", "int"), Step("ward")),
    "smokes": (Boolean(missing=True), Kind("boolean", "bit"), Step("smokes")),
    "born": (Date(date(1990, 1, 1), date(1999, 12, 31), "year"), Kind("date", "date"), Step("born")),
    "seen": (
        DateTime(datetime(2020, 1, 1), datetime(2020, 1, 3), "day", missing=True),
        Kind("timestamp", "timestamp"),
        Step("seen"),
    ),
}
NOT_RUN = {"mssql": "tsql", "oracle": "oracle", "snowflake": "snowflake", "bigquery": "bigquery"}
"""sqlglot's name of each dialect."""


def columns(name: str) -> Mapping[str, tuple[Column, Kind, Step]]:
    """What this database can say: SQL Server has no patterns, and BigQuery's names no quotation marks."""
    return {
        one.replace('"', "") if name == "bigquery" else one: column
        for one, column in COLUMNS.items()
        if one != "grade" or PRODUCTS[name].patterns
    }


def dialect(name: str) -> Any:
    """SQLAlchemy's dialect. Raises ImportError without it."""
    if name == "mssql":
        from sqlalchemy.dialects.mssql import pyodbc

        return pyodbc.dialect()
    if name == "oracle":
        from sqlalchemy.dialects.oracle import oracledb

        return oracledb.dialect()
    if name == "snowflake":
        from snowflake.sqlalchemy import snowdialect

        return snowdialect.dialect()
    from sqlalchemy_bigquery import BigQueryDialect

    return BigQueryDialect()


def coded(name: str, dialect: Any) -> Coded:
    """The table as statements see it."""
    product = PRODUCTS[name]
    return Coded(
        relation(TABLE, dialect),
        {
            one: cases(wanted, step, kind, trimmed(column(one), kind), product)
            for one, (wanted, kind, step) in columns(name).items()
        },
    )


def statements(name: str) -> dict[str, Any]:
    """By what they are for, compiled."""
    made = dialect(name)
    table = coded(name, made)
    names = list(columns(name))
    chosen = {"cells": table.union(names, ()), "fates": table.fates(names)}
    return {
        what: one.compile(dialect=made, compile_kwargs={"render_postcompile": True})
        for what, one in chosen.items()
    }


def text(name: str) -> str:
    """All of them, as they are sent; bound values stay what they are, beside the statement."""
    return (
        "\n\n".join(re.sub(r"[ \t]+\n", "\n", str(one.string)) + ";" for one in statements(name).values())
        + "\n"
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in NOT_RUN:
        (FOLDER / f"{each}.sql").write_text(text(each), encoding="utf-8")
