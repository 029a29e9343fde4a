"""A table of a PostgreSQL server: read-only, in one snapshot, streamed.

A custodian's records stay where they are: nothing is exported to a file first. Everything that a run asks of
the server (does a person have too many rows? the rows themselves) is one REPEATABLE READ, READ ONLY
transaction, so that the bound on rows per person was checked on the very rows that are counted, whoever
writes meanwhile.

Rows come by COPY ... TO STDOUT, which the server streams as it scans and TCP's flow control slows down:
neither side ever holds more than a block, and a row costs less than half of what a cursor's Python objects
cost. It is text in CSV form, which Arrow parses to the types that the table declares:

    smallint, integer, bigint, numeric(p <= 18, 0)   int64
    real, double precision, other numeric            float64
    boolean, date, timestamp (with time zone: UTC)   the same
    text, varchar, char(n) without its blanks, enums, uuid, time, citext   text
    anything else                                    refused, where the study names the column

The password may stand in the URL, in the files and variables that libpq knows (~/.pgpass, PGPASSWORD,
PGSERVICEFILE), or not at all; the URL's query holds libpq's options, such as sslmode=verify-full, without
which the server's identity is not checked.

Errors are the driver's own, which quote records and addresses: `source` is the only caller and forwards
none of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from parties.data.libraries import csv, pa
from parties.data.table_names import parts

_CONNECT_S = 15
_BLOCK_BYTES = 1 << 25  # a block of very long texts is cut before it has all its rows
_SETTINGS = {
    "datestyle": "ISO",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "client_min_messages": "error",
    # the same order in every statement: no scan starts where another one is, no two workers take turns
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
}
_TYPES = {
    "int2": "int64",
    "int4": "int64",
    "int8": "int64",
    "float4": "double",
    "float8": "double",
    "bool": "bool",
    "date": "date32",
    "timestamp": "timestamp",
    "timestamptz": "instant",
    "uuid": "string",
    "time": "string",
}


class UnknownType(Exception):
    """A column of a type that has no codes. Its name and type are public: no value is in here."""

    def __init__(self, column: str, kind: str) -> None:
        super().__init__(column, kind)
        self.column, self.kind = column, kind


class Server:
    """An open table or view of a server, in one transaction that `close` ends. See `duckdb_engine.Engine`.

    ordered: whether its rows have an order: those of a view do, if it says ORDER BY; those of a table do not.
    """

    def __init__(self, url: str, table: str) -> None:
        from psycopg import sql

        self._connection = _connected(url)
        try:
            self._sql: Any = sql
            self.table = table
            self._table: Any = sql.Identifier(*parts(table))
            with self._connection.cursor() as cursor:
                for (
                    name,
                    value,
                ) in _SETTINGS.items():  # not as an option of the connection: a pooler would refuse it
                    cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
                columns = cursor.execute(
                    self._sql.SQL("SELECT * FROM {} LIMIT 0").format(self._table)
                ).description
                cursor.execute(
                    "SELECT oid, typname, typcategory FROM pg_type WHERE oid = ANY(%s)",
                    [[column.type_code for column in columns]],
                )
                types = {oid: (name, category) for oid, name, category in cursor}
                cursor.execute(
                    "SELECT relkind FROM pg_class WHERE oid = %s::regclass", [self._table.as_string(cursor)]
                )
                (relation,) = cursor.fetchone()
            self.fields: tuple[str, ...] = tuple(column.name for column in columns)
            self._types = {column.name: types[column.type_code][0] for column in columns}
            self._kinds = {
                column.name: _kind(*types[column.type_code], column.precision, column.scale)
                for column in columns
            }
            self.ordered = relation == "v"
        except BaseException:
            self.close()
            raise

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """See `Engine`. Raises `UnknownType`."""
        for field in fields:
            if not self._kinds[field]:
                raise UnknownType(field, self._types[field])
        return self._blocks(fields, rows)

    def _blocks(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        sql = self._sql
        statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(
            sql.SQL(", ").join(self._expression(field) for field in fields), self._table
        )
        kinds = {f"c{i}": _arrow(self._kinds[field]) for i, field in enumerate(fields)}
        # a savepoint: a reader that stops early cancels the statement, not the transaction
        with (
            self._connection.transaction(),
            self._connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            lines: list[bytes] = []
            size = 0
            for line in copy:  # one message holds one row
                lines.append(bytes(line))
                size += len(line)
                if len(lines) == rows or size >= _BLOCK_BYTES:
                    yield _parsed(lines, size, kinds)
                    lines, size = [], 0
            if lines:
                yield _parsed(lines, size, kinds)

    @property
    def types(self) -> dict[str, tuple[str, str]]:
        """What each column is read as, "" if it is not, and its type in the database."""
        return {name: (kind, self._types[name]) for name, kind in self._kinds.items()}

    def query(self, statement: str, values: Mapping[str, Any], most: int) -> list[tuple[Any, ...]]:
        """Up to `most` rows of a statement's result. values: bound to %(name)s."""
        with self._connection.cursor() as cursor:
            found: list[tuple[Any, ...]] = cursor.execute(statement, values).fetchmany(most)
            return found

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `Engine`. Pushed down: one row comes back."""
        sql = self._sql
        unit = self._expression(field)
        if self._kinds[field] == "string":
            unit = sql.SQL("nullif({}, '')").format(unit)
        with self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL(
                    "SELECT bool_or(unit IS NOT NULL AND size > {}), bool_or(unit IS NULL) FROM "
                    "(SELECT {} AS unit, count(*) AS size FROM {} GROUP BY 1) AS units"
                ).format(sql.Literal(bound), unit, self._table)
            )
            above, absent = cursor.fetchone()
        return bool(above), bool(absent)  # NULL over no rows

    def _expression(self, field: str) -> Any:
        """Texts as `text`: that drops the blanks that fill up a char(n), and makes an enum its label."""
        column = self._sql.Identifier(field)
        return self._sql.SQL("{}::text").format(column) if self._kinds[field] == "string" else column

    def close(self) -> None:
        """End the transaction and the connection."""
        with suppress(Exception):  # nothing was written: there is nothing to lose
            self._connection.close()


def _connected(url: str) -> Any:
    """A connection whose one transaction begins with the first statement."""
    import psycopg

    stated = dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))
    defaults = {"keepalives_idle": 30, "connect_timeout": _CONNECT_S}
    options: dict[str, Any] = {key: value for key, value in defaults.items() if key not in stated}
    options["client_encoding"] = "utf8"
    logging.getLogger(
        "psycopg"
    ).disabled = True  # its warnings quote the server's words, and would be printed
    connection = psycopg.connect(url, **options)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection


def _kind(name: str, category: str, precision: int | None, scale: int | None) -> str:
    """What a type is read as; "" if it is not. name, category: of pg_type."""
    if name == "numeric":
        return "int64" if precision is not None and precision <= 18 and scale == 0 else "double"
    return _TYPES.get(name, "string" if category in ("S", "E") else "")


def _arrow(kind: str) -> pa.DataType:
    return {
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "date32": pa.date32(),
        "string": pa.string(),
        "timestamp": pa.timestamp("us"),
        "instant": pa.timestamp("us", "UTC"),
    }[kind]


def _parsed(lines: Sequence[bytes], size: int, kinds: dict[str, pa.DataType]) -> pa.RecordBatch:
    """A block of COPY's lines: a null is nothing at all, an empty text is quoted."""
    table = csv.read_csv(
        pa.BufferReader(pa.py_buffer(b"".join(lines))),
        csv.ReadOptions(use_threads=False, block_size=size + 1, column_names=list(kinds)),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
            check_utf8=False,
        ),
    )
    (batch,) = table.combine_chunks().to_batches()
    return batch
