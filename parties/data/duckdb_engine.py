"""What runs the queries on a custodian's table: DuckDB inside this process, or a database server (`postgres.py`).

Either way a table is opened for reading only, its rows are streamed in Arrow record batches, all statements of one opening see
the same rows, and nothing is fetched from the network but that table. A DuckDB database is locked by who has it open: nobody
writes it while a reader holds it, and a reader within one transaction sees one snapshot in any case. It may be somebody else's,
and hold a view without an end: what is no table of it is computed for `VIEW_S` seconds at most.

Errors are the libraries' own, which quote records and addresses: `source.py` is the only caller and forwards none of them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from parties.data.table_names import parts

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

# DuckDB must not fetch code from the network, and must leave room for the counts in 2 GiB
_LIMITS: Mapping[str, Any] = {
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_SETTINGS = (
    "SET enable_progress_bar = false",  # stdout belongs to the runner
    "SET TimeZone = 'UTC'",
)  # a moment in time is the same text at every custodian
ROW_NUMBER = "file_row_number"
"""DuckDB's name for a row's place in a Parquet file, unless the file has a column that is called so."""


VIEW_S = 1800.0
"""How long a view of a DuckDB database may be computed, in all statements of one opening together: it may have no end. What its
reader does with the rows meanwhile does not count; tables have an end, and no limit."""


class Endless(Exception):
    """A view was computed for longer than `VIEW_S`. Says no more."""


class _Allowance:
    """The time that a connection's statements may take together; then the one under way is interrupted."""

    def __init__(self, connection: DuckDBPyConnection, seconds: float) -> None:
        self._connection, self._left_s, self._is_over = connection, seconds, False

    def spend(self, call: Callable[[], T]) -> T:
        """The call's result. Raises `Endless`."""
        if self._left_s <= 0:
            raise Endless
        began = time.monotonic()
        timer = threading.Timer(self._left_s, self._stop)
        timer.daemon = True
        timer.start()
        try:
            return call()
        except Exception:
            if self._is_over:
                raise Endless from None
            raise
        finally:
            timer.cancel()
            self._left_s -= time.monotonic() - began

    def _stop(self) -> None:
        self._is_over = True
        self._connection.interrupt()


def numbered(columns: Iterable[str]) -> bool:
    """Whether a file has a column of that name, so that its rows cannot be read in ranges."""
    return ROW_NUMBER in {name.lower() for name in columns}


class Engine(Protocol):
    """An open table. fields: its columns' names as the engine knows them, in order. ordered: whether its rows have an order that
    a second reading finds again."""

    fields: tuple[str, ...]
    ordered: bool

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of all rows, in the table's order, in batches of at most `rows` rows."""

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """Whether some value of the column ("" and NULL are none) has more than `bound` rows, and whether a row has none."""

    def close(self) -> None:
        """Release the connection."""


class DuckDB:
    """A CSV or Parquet file, or a table of a DuckDB database. spill: a folder for what a query cannot keep in memory. table: what
    FROM names."""

    ordered = True  # DuckDB keeps a table's order of insertion

    def __init__(
        self,
        database: Path | None,
        table: str,
        spill: str,
        shared: Shared | None = None,
        more: Sequence[str] = (),
        view_s: float | None = None,
    ) -> None:
        """shared: what reads files for many sources; None: a DuckDB of its own. more: settings. view_s: how long it may be
        computed; None: for as long as it takes."""
        self._connection = _connect(database, spill) if shared is None else shared.cursor()
        try:
            for statement in (*_SETTINGS, *more):
                self._connection.execute(statement)
            self._connection.begin()
            self.table = table
            self._allowance = None if view_s is None else _Allowance(self._connection, view_s)
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
        """All fields as text, named c0, c1, ... by their place; RFC 4180 but for the delimiter, a header, nothing guessed."""
        texts = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(columns))
        return cls(
            None,
            f"read_csv({_this_file(path)}, columns = {{{texts}}}, auto_detect = false, header = true, "
            f"delim = {_literal(delimiter)}, "
            """quote = '"', escape = '"', nullstr = '', hive_partitioning = false)""",
            spill,
            shared,
        )

    @classmethod
    def parquet(
        cls, path: Path, spill: str, shared: Shared | None = None, rows: tuple[int, int] | None = None
    ) -> DuckDB:
        """A Parquet file, in the types it states. rows: only these, by one thread; other row groups are not read."""
        table = f"read_parquet({_this_file(path)}, hive_partitioning = false)"
        if rows is not None:
            first, end = rows
            table = f"(FROM {table} WHERE {ROW_NUMBER} >= {first:d} AND {ROW_NUMBER} < {end:d})"
        return cls(None, table, spill, shared, () if rows is None else ("SET threads = 1",))

    @classmethod
    def database(cls, path: Path, table: str, spill: str, view_s: float | None = None) -> DuckDB:
        """A table or view (`people`, or `schema.people`) of a database, opened read-only. view_s: in place of `VIEW_S`."""
        found = cls(
            path, ".".join(map(_quoted, parts(table))), spill, view_s=VIEW_S if view_s is None else view_s
        )
        if found._is_table(parts(table)):
            found._allowance = None
        return found

    def _is_table(self, names: Sequence[str]) -> bool:
        """Whether it is stored, and no view: then it has an end. Names are alike whatever their capitals."""
        *schema, table = names
        [(stored,)] = self._connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE lower(table_name) = lower($1) AND lower(schema_name) = lower($2) "
            "AND database_name = current_database()",
            [table, ".".join(schema) or "main"],
        ).fetchall()
        return bool(stored)

    def _spent(self, call: Callable[[], T]) -> T:
        """The call's result, within what a view may take."""
        return call() if self._allowance is None else self._allowance.spend(call)

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """See `Engine`."""
        reader: Iterator[pa.RecordBatch] = self._spent(
            lambda: self._connection.sql(
                f"SELECT {', '.join(map(_quoted, fields))} FROM {self.table}"
            ).to_arrow_reader(rows)
        )
        return reader if self._allowance is None else self._within(reader)

    def _within(self, reader: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while (batch := self._spent(lambda: next(reader, None))) is not None:
            yield batch

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `Engine`. The GROUP BY may spill."""
        unit = _quoted(field)
        if self._kinds[self.fields.index(field)].startswith(("VARCHAR", "ENUM")):
            unit = f"nullif({unit}, '')"
        ((above, absent),) = self._spent(
            lambda: self._connection.sql(
                f"SELECT bool_or(unit IS NOT NULL AND size > {bound:d}), bool_or(unit IS NULL) FROM "
                f"(SELECT {unit} AS unit, count(*) AS size FROM {self.table} GROUP BY ALL)"
            ).fetchall()
        )
        return bool(above), bool(absent)  # NULL over no rows

    def schema(self) -> pa.Schema:
        """The columns in the types that the stream has."""
        empty = self._spent(
            lambda: self._connection.sql(f"SELECT * FROM {self.table} LIMIT 0").to_arrow_table()
        )
        return empty.schema

    def query(self, sql: str, values: Sequence[Any], most: int) -> list[tuple[Any, ...]]:
        """Up to `most` rows of a statement's result. values: bound to $1, $2, ..."""
        found: list[tuple[Any, ...]] = self._spent(
            lambda: self._connection.execute(sql, values).fetchmany(most)
        )
        return found

    def close(self) -> None:
        """See `Engine`."""
        with suppress(Exception):  # nothing was written: there is nothing to lose
            self._connection.close()


class Shared:
    """One DuckDB that reads many files, each over a connection and in a transaction of its own: making one costs 20 ms of CPU.

    It keeps nothing of a file once its source is closed. spill: a folder for what a query cannot keep in memory.
    """

    def __init__(self, spill: str) -> None:
        self._connection = _connect(None, spill)
        self._connection.execute("SET enable_external_file_cache = false")

    def cursor(self) -> DuckDBPyConnection:
        """Another connection."""
        return self._connection.cursor()

    def close(self) -> None:
        """Close all of them."""
        self._connection.close()


def _connect(database: Path | None, spill: str) -> DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(
        ":memory:" if database is None else str(database),
        read_only=database is not None,
        config={**_LIMITS, "temp_directory": spill},
    )
    if database is not None:
        # It may be somebody else's, and its views run here: they read that database, and no other file of this machine. Once off,
        # it stays off. (Files that a custodian names are read by statements of ours alone.)
        connection.execute("SET enable_external_access = false")
    return connection


def _this_file(path: Path) -> str:
    """A literal for this very file, though DuckDB reads patterns in a path."""
    return _literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
