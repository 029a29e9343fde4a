"""What a column of each type is read as, without a database: the types as SQLAlchemy's dialects reflect them."""

from __future__ import annotations

import pytest

sa = pytest.importorskip("sqlalchemy")

from sqlalchemy.dialects import mssql, mysql, oracle, postgresql  # noqa: E402

from parties.data.sql.kinds import Kind, of_sqlalchemy  # noqa: E402

KINDS = [
    ("postgresql", sa.BOOLEAN(), Kind("boolean", "boolean")),
    ("postgresql", sa.SMALLINT(), Kind("integer", "smallint")),
    ("postgresql", sa.DOUBLE_PRECISION(), Kind("double", "double_precision")),
    ("postgresql", sa.NUMERIC(), Kind("decimal", "numeric")),
    ("postgresql", sa.NUMERIC(18, 0), Kind("integer", "numeric", 18)),
    ("postgresql", sa.NUMERIC(9, 2), Kind("decimal", "numeric", 9, 2)),
    ("postgresql", sa.VARCHAR(8), Kind("text", "varchar")),
    ("postgresql", sa.CHAR(8), Kind("text", "char", padded=True)),
    ("postgresql", sa.DATE(), Kind("date", "date")),
    ("postgresql", postgresql.TIMESTAMP(), Kind("timestamp", "timestamp")),
    ("postgresql", postgresql.TIMESTAMP(timezone=True), Kind("", "timestamp")),
    ("postgresql", postgresql.INTERVAL(), Kind("", "interval")),
    ("postgresql", postgresql.BIT(1), Kind("", "bit")),
    ("postgresql", postgresql.BYTEA(), Kind("", "bytea")),
    ("postgresql", postgresql.UUID(), Kind("", "uuid")),
    ("mysql", mysql.INTEGER(unsigned=True), Kind("integer", "integer", signed=False)),
    ("mysql", mysql.YEAR(), Kind("", "year")),
    ("mysql", mysql.BIT(1), Kind("", "bit")),
    ("mysql", mysql.DATETIME(), Kind("timestamp", "datetime")),
    ("mssql", mssql.BIT(), Kind("boolean", "bit")),
    ("mssql", mssql.NCHAR(4), Kind("text", "nchar", padded=True)),
    ("mssql", mssql.DATETIME2(), Kind("timestamp", "datetime2")),
    ("mssql", mssql.DATETIMEOFFSET(), Kind("", "datetimeoffset")),
    ("mssql", mssql.IMAGE(), Kind("", "image")),
    ("oracle", oracle.BINARY_DOUBLE(), Kind("double", "binary_double")),
    ("oracle", oracle.INTERVAL(), Kind("", "interval")),
    ("oracle", oracle.ROWID(), Kind("", "rowid")),
    ("oracle", oracle.DATE(), Kind("timestamp", "date")),
    ("bigquery", sa.TIMESTAMP(), Kind("", "timestamp")),
    ("sqlite", sa.BOOLEAN(), Kind("integer", "boolean")),
    ("sqlite", sa.INTEGER(), Kind("integer", "integer")),
    ("sqlite", sa.NUMERIC(9, 2), Kind("double", "numeric")),
    ("sqlite", sa.DATE(), Kind("text", "date")),
    ("sqlite", sa.BLOB(), Kind("", "blob")),
]


@pytest.mark.parametrize(
    ("scheme", "kind", "expected"), KINDS, ids=[f"{scheme} {kind!r}" for scheme, kind, _ in KINDS]
)
def test_a_type_is_read_as(scheme: str, kind: object, expected: Kind) -> None:
    assert of_sqlalchemy(kind, scheme) == expected
