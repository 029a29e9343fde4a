"""What runs the queries on a custodian's table: DuckDB inside this process, or a database server
(`postgres.py`).

Either way a table is opened for reading only, its rows are streamed in Arrow record batches, all statements
of one opening see the same rows, and nothing is fetched from the network but that table. A DuckDB database is
locked by who has it open: nobody writes it while a reader holds it, and a reader within one transaction sees
one snapshot in any case.

A database may be somebody else's. It is attached beside an empty one, in which the names of functions are
looked up, so that no macro of its own takes the place of one that is called here; what is no stored table is
computed elsewhere (`duckdb_view.py`).

Errors are the libraries' own, which quote records and addresses: `source` is the only caller and forwards
none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from parties.data.libraries import duckdb
from parties.data.table_names import parts

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

# DuckDB must not fetch code from the network, and must leave room for the counts in 2 GiB
_LIMITS: Mapping[str, Any] = {
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
ROW_NUMBER = "file_row_number"
"""DuckDB's name for a row's place in a Parquet file, unless the file has a column that is called so."""


def settle(connection: DuckDBPyConnection) -> None:
    """Have a moment in time be the same text at every custodian, and stdout belong to the runner: no progress bar.

    In a notebook without ipywidgets DuckDB has none, and refuses to be told so.
    """
    connection.execute("SET TimeZone = 'UTC'")
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")


def numbered(columns: Iterable[str]) -> bool:
    """Whether a file has a column of that name, so that its rows cannot be read in ranges."""
    return ROW_NUMBER in {name.lower() for name in columns}


class Engine(Protocol):
    """An open table. fields: its columns' names as the engine knows them, in order. ordered: whether its rows
    have an order that a second reading finds again."""

    fields: tuple[str, ...]
    ordered: bool

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of all rows, in the table's order, in batches of at most `rows` rows."""

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """Whether some value of the column ("" and NULL are none) has more than `bound` rows, and whether a
        row has none."""

    def close(self) -> None:
        """Release the connection."""


class DuckDB:
    """A CSV or Parquet file, or a table of a DuckDB database. table: what FROM names."""

    ordered = True  # DuckDB keeps a table's order of insertion

    def __init__(self, connection: DuckDBPyConnection, table: str, more: Sequence[str] = ()) -> None:
        """connection: closed with it, also if this fails. more: settings."""
        self._connection = connection
        try:
            settle(self._connection)
            for statement in more:
                self._connection.execute(statement)
            self._connection.begin()
            self.table = table
            relation = self._connection.sql(f"SELECT * FROM {table}")
            self.fields: tuple[str, ...] = tuple(relation.columns)
            self._kinds = [str(kind) for kind in relation.types]
        except BaseException:
            self.close()
            raise

    @classmethod
    def csv(
        cls, path: Path, columns: int, spill: str, shared: Shared | None = None, delimiter: str = ","
    ) -> DuckDB:
        """All fields as text, named c0, c1, ... by their place; RFC 4180 but for the delimiter, a header,
        nothing guessed.

        spill: a folder for what a query cannot keep in memory. shared: what reads files for many sources;
        None: a DuckDB of its own."""
        texts = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(columns))
        return cls(
            _own_connection(spill, shared),
            f"read_csv({_this_file(path)}, columns = {{{texts}}}, auto_detect = false, header = true, "
            f"delim = {_literal(delimiter)}, "
            """quote = '"', escape = '"', nullstr = '', hive_partitioning = false)""",
        )

    @classmethod
    def parquet(
        cls, path: Path, spill: str, shared: Shared | None = None, rows: tuple[int, int] | None = None
    ) -> DuckDB:
        """A Parquet file, in the types it states. rows: only these, by one thread; other row groups are not
        read."""
        table = f"read_parquet({_this_file(path)}, hive_partitioning = false)"
        if rows is not None:
            first, end = rows
            table = f"(FROM {table} WHERE {ROW_NUMBER} >= {first:d} AND {ROW_NUMBER} < {end:d})"
        return cls(_own_connection(spill, shared), table, () if rows is None else ("SET threads = 1",))

    @classmethod
    def database(cls, path: Path, table: str, spill: str) -> DuckDB:
        """A table or view (`people`, or `schema.people`) of a database, opened read-only."""
        connection, catalog = attached(path, spill)
        return cls(connection, ".".join(map(_quoted, full_name(catalog, table))))

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """See `Engine`."""
        selected = self._connection.sql(f"SELECT {', '.join(map(_quoted, fields))} FROM {self.table}")
        reader: Iterator[pa.RecordBatch] = selected.to_arrow_reader(rows)
        return reader

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `Engine`. The GROUP BY may spill."""
        unit = _quoted(field)
        if self._kinds[self.fields.index(field)].startswith(("VARCHAR", "ENUM")):
            unit = f"nullif({unit}, '')"
        ((above, absent),) = self._connection.sql(
            f"SELECT bool_or(unit IS NOT NULL AND size > {bound:d}), bool_or(unit IS NULL) FROM "
            f"(SELECT {unit} AS unit, count(*) AS size FROM {self.table} GROUP BY ALL)"
        ).fetchall()
        return bool(above), bool(absent)  # NULL over no rows

    def schema(self) -> pa.Schema:
        """The columns in the types that the stream has."""
        return self._connection.sql(f"SELECT * FROM {self.table} LIMIT 0").to_arrow_table().schema

    def query(self, sql: str, values: Sequence[Any], most: int) -> list[tuple[Any, ...]]:
        """Up to `most` rows of a statement's result. values: bound to $1, $2, ..."""
        found: list[tuple[Any, ...]] = self._connection.execute(sql, values).fetchmany(most)
        return found

    def close(self) -> None:
        """See `Engine`."""
        with suppress(Exception):  # nothing was written: there is nothing to lose
            self._connection.close()


class Shared:
    """One DuckDB that reads many files, each over a connection and in a transaction of its own: making one
    costs 20 ms of CPU.

    It keeps nothing of a file once its source is closed. spill: a folder for what a query cannot keep in
    memory.
    """

    def __init__(self, spill: str) -> None:
        self._connection = _connect(spill)
        self._connection.execute("SET enable_external_file_cache = false")

    def cursor(self) -> DuckDBPyConnection:
        """Another connection."""
        return self._connection.cursor()

    def close(self) -> None:
        """Close all of them."""
        self._connection.close()


def _own_connection(spill: str, shared: Shared | None) -> DuckDBPyConnection:
    return _connect(spill) if shared is None else shared.cursor()


def _connect(spill: str) -> DuckDBPyConnection:
    """An empty database. spill: a folder for what a query cannot keep in memory."""
    return duckdb.connect(":memory:", config={**_LIMITS, "temp_directory": spill})


def attached(path: Path, spill: str) -> tuple[DuckDBPyConnection, str]:
    """An empty database that has another one beside it, read-only, and what that is called there. spill: as
    `DuckDB.csv`'s.

    It may be somebody else's: its views read that database, and no other file of this machine. (Files that a
    custodian names are read by statements of ours alone.)
    """
    connection = _connect(spill)
    try:
        # called as if it were opened by itself, for its views may say so; "memory" is the empty one
        name = ' AS "memory_db"' if path.stem.lower() == "memory" else ""
        connection.execute(f"ATTACH {_literal(str(path.resolve()))}{name} (TYPE duckdb, READ_ONLY)")
        connection.execute("SET enable_external_access = false")  # once off, it stays off
        [(catalog,)] = connection.execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL"
        ).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection, str(catalog)


def full_name(catalog: str, table: str) -> tuple[str, str, str]:
    """Database, schema and table of `people`, `schema.people` or `database.schema.people`. Raises
    `ValueError`."""
    *before, name = parts(table)
    if len(before) == 2 and before[0].lower() == catalog.lower():
        del before[0]
    schema, *more = before or ["main"]
    if more:
        raise ValueError("A table of another database.")
    return catalog, schema, name


def is_stored(connection: DuckDBPyConnection, name: tuple[str, str, str]) -> bool:
    """Whether it is a table whose values are all stored, none computed. Names are alike whatever their
    capitals."""
    [(stored,)] = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE lower(database_name) = lower($1) AND lower(schema_name) = lower($2) "
        "AND lower(table_name) = lower($3) AND NOT contains(upper(sql), 'GENERATED ALWAYS AS')",
        list(name),
    ).fetchall()
    return bool(stored)


def _this_file(path: Path) -> str:
    """A literal for this very file, though DuckDB reads patterns in a path."""
    return _literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
