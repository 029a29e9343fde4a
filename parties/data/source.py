"""A custodian's table where it lives, opened read-only and streamed in blocks.

A file and a database look alike: CSV and Parquet files and tables of DuckDB databases are read by DuckDB
inside this process (`duckdb_engine`; their views by another one, `duckdb_view`), PostgreSQL by its own
protocol (`postgres`), other databases through SQLAlchemy (`sql/`), so that no custodian ever exports its
records. Where rows may not even travel, a database is asked for counts only. Whatever is asked of a source is
answered about the same rows: a file that changes meanwhile is refused, a database is read in one snapshot. A
source is streamed in bounded Arrow record batches; nothing holds more than a few blocks, whatever the number
of rows (a GROUP BY on the unit's identifier may spill to a private temporary folder, which `close` removes; a
process that ends while a thread still reads calls `scratch.remove_spills`).

Types are never guessed. A CSV file is read as text (`csv_text`): "007", "1.0" and "true" mean what the
study's domain says (`coding`), not what a sniffer thinks. An empty field is a missing value. What else a
private file makes of a table, `harmony/` does.

Threat model: the custodian trusts its own machine, and nobody else may learn a record from it, not even
through an error message. Libraries quote the offending record (DuckDB), the connection string (database
drivers) or both. Their errors are therefore never forwarded nor chained (`read_errors.py`): what leaves this
file is a `DataRefused` that names the file, the line and the column (`docs/design/privacy.md` 8), raised
outside the handler so that no `__context__` holds the original. A header is read as names only after at least
one of the study's columns was recognised in it (`scan`): a file without a header line would otherwise show
its first record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from mpc_protocols.errors import DataRefused
from parties.data import read_errors
from parties.data.engines.duckdb_engine import ROW_NUMBER, DuckDB, Engine, Shared, numbered
from parties.data.engines.duckdb_view import View, open_database
from parties.data.engines.postgres import Server
from parties.data.files import csv_text
from parties.data.harmony.rules import RFC
from parties.data.libraries import pa, parquet
from parties.data.location import Location
from parties.data.scratch import Spill
from parties.data.sql.grouping import OverDuckDB, OverPostgres
from parties.data.sql.products import PRODUCTS
from parties.data.sql.server import Database

if TYPE_CHECKING:
    from parties.data.harmony.values import Change
    from parties.data.sql.grouping import Grouping, Row
    from parties.data.sql.statements import Statement

BLOCK_ROWS = 1 << 16
"""Rows of a record batch by default: a column of int64 codes is then 512 KiB and stays in a second-level
cache."""

_shared: ContextVar[Shared | None] = ContextVar("shared", default=None)  # of `many_files`


@contextmanager
def many_files() -> Iterator[None]:
    """For a thread that opens many CSV and Parquet files one after the other: one engine reads those opened
    inside."""
    with Spill() as folder:
        shared = Shared(str(folder))
        token = _shared.set(shared)
        try:
            yield
        finally:
            _shared.reset(token)
            shared.close()


def _parquet_names(location: Location) -> tuple[str, ...]:
    """The names of a file's columns as they stand there."""
    return tuple(parquet.read_schema(location.path).names)


class Source:
    """An open table: its column names, and its rows in blocks. Use as a context manager, or `close` it.

    columns: the names as the data has them, in order. leaves_out: whether rows without an identifier are left
    out, not refused. changes, left_out: what the private file made of the values, and how many rows its
    filter left out, in the last reading; private. One query runs at a time.
    """

    leaves_out = False
    left_out = 0
    changes: Mapping[str, Change] = MappingProxyType({})

    def __init__(self, location: Location) -> None:
        self.location = location
        self.label = location.label
        self._stamp = self._stat()
        self._changed = f"{self.label} changed while it was read; run again when nobody writes to it."
        if location.state is not None and (self._stamp or ())[1:] != location.state:
            raise DataRefused(self._changed)
        self._copies: list[Spill] = []
        self._scratch = Spill()
        self._spill = str(self._scratch.path)
        self._engine: Engine | None = None
        try:
            header = csv_text.header(location) if location.kind == "csv" else ()
            self._engine = read_errors.attempt(lambda: self._connect(len(header)), self._unopened)
        except BaseException:
            self.close()
            raise
        if location.rows is not None and numbered(self._engine.fields):
            self.close()
            raise DataRefused(
                f"{self.label} has a column {ROW_NUMBER} of its own and is not read in ranges; rename it."
            )
        # fields of files go by position: DuckDB's names ignore case, and a file may repeat a name
        if location.kind == "parquet":
            header = read_errors.attempt(lambda: _parquet_names(location), self._unopened)
        self._header = header or self._engine.fields
        self.columns: tuple[str, ...] = self._header

    @property
    def header(self) -> tuple[str, ...]:
        """The data's own names, before a private file makes columns of them; a CSV's may be a record's fields."""
        return self._header

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connection and whatever a query has spilled."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        for folder in (self._scratch, *self._copies):
            folder.close()

    def keep(self, copy: Spill) -> None:
        """Remove this folder, in which the table lies as a copy, when the source is closed."""
        self._copies.append(copy)

    def _connect(self, columns: int) -> Engine:
        location = self.location
        if location.kind in ("sqlite", "server"):
            return Database(location.url, location.table, location.path)
        if location.path is None:
            return Server(location.url, location.table)
        if location.kind == "csv":
            path = location.path
            if location.dialect.encoding != RFC.encoding:
                path = csv_text.transcoded(location, self._scratch.path / "table.csv")
            return DuckDB.csv(path, columns, self._spill, _shared.get(), location.dialect.delimiter)
        if location.kind == "parquet":
            return DuckDB.parquet(location.path, self._spill, _shared.get(), location.rows)
        return open_database(location.path, location.table, self._spill)

    def _open(self) -> Engine:
        if self._engine is None:
            raise ValueError(f"{self.label} is closed.")
        return self._engine

    def _unopened(self, error: Exception) -> str:
        return self._changed if self._stat() != self._stamp else read_errors.unopened(self.location, error)

    def _unread(self, error: Exception) -> str:
        return self._changed if self._stat() != self._stamp else read_errors.unread(self.location, error)

    def _stat(self) -> tuple[int, ...] | None:
        if self.location.path is None:
            return None
        try:
            stat = self.location.path.stat()
        except OSError:  # it is gone
            return ()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def batches(self, names: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
        """The named columns of all rows, in the table's order and in batches of at most `rows` rows.

        names: columns that exist, each once; batches have them in this order, a CSV's as text. Raises
        `DataRefused` when a row cannot be read, or the file changed meanwhile.
        """
        if self.location.push_down:
            raise DataRefused(
                f"{self.label}: its rows may not leave the database (push_down = true), and this needs rows; leave push_down "
                "out, or use a study whose custodians have all columns."
            )
        schema: pa.Schema | None = None
        engine, fields = self._open(), [self._field(name) for name in names]
        reader = read_errors.attempt(lambda: engine.stream(fields, rows), self._unread)
        while (batch := read_errors.attempt(lambda: next(reader, None), self._unread)) is not None:
            schema = schema or pa.schema(
                [(name, kind) for name, kind in zip(names, batch.schema.types, strict=True)]
            )
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise `DataRefused` if the file is not what it was when it was opened."""
        if self._stat() != self._stamp:
            raise DataRefused(self._changed)

    def _field(self, name: str) -> str:
        return self._open().fields[self._header.index(name)]

    def lacking(self, name: str) -> str:
        """The sentence about a column of the study that is not there."""
        cure = "names must be equal, capitals included"
        if alike := [each for each in self.columns if each.strip().casefold() == name.strip().casefold()]:
            cure = (
                'one differs in capitals only; write names = "ignore case" under [harmonise]'
                if any(each.casefold() == name.casefold() for each in alike)
                else f"one differs in blanks; write from = {_quoted(alike[0])} under [harmonise.columns.{_key(name)}]"
            ) + " of the private file"
        return f'{self.label} has no column "{name}", which the study declares; {cure}.'

    @property
    def ordered(self) -> bool:
        """Whether the rows have an order, which another owner's rows could follow: those of a server's table
        have none."""
        return self._open().ordered

    def units(self, name: str, bound: int) -> tuple[bool, bool]:
        """Whether some value of the column has more than `bound` rows, and whether some row has none. One
        pass, pushed down."""
        engine, field = self._open(), self._field(name)
        return read_errors.attempt(lambda: engine.units(field, bound), self._unread)

    def outgrown(self, name: str, bound: int) -> bool:
        """Whether `units` has come to find a value with more than `bound` rows after the rows were read:
        asked again where statements do not all see the same rows, as tables grow. False where they do."""
        if self.location.kind != "server" or PRODUCTS[self.location.url.partition("://")[0]].snapshot:
            return False
        return self.units(name, bound)[0]

    def grouping(self) -> Grouping:
        """The table as one that is counted where it is. Raises `DataRefused` for a file of records."""
        engine = self._open()
        if self.location.kind == "duckdb" and isinstance(engine, DuckDB | View):
            return read_errors.attempt(lambda: OverDuckDB(engine), self._unopened)
        if isinstance(engine, Server):
            return read_errors.attempt(lambda: OverPostgres(engine), self._unopened)
        if self.location.kind in ("sqlite", "server"):
            return cast("Grouping", engine)
        raise DataRefused(f"{self.label} is a file of records and cannot be counted inside a database.")

    def fetch(self, grouping: Grouping, statement: Statement, most: int) -> list[Row]:
        """Up to `most` rows of a statement's result. Raises `DataRefused`."""
        found = read_errors.attempt(lambda: grouping.fetch(statement, most), self._unread)
        if self._stat() != self._stamp:
            raise DataRefused(self._changed)
        return found

    def places(self, rows: Collection[int]) -> dict[int, str]:
        """Where a person finds these rows (numbered from 0): "line 17" of a CSV, "row 16" of anything else."""
        if self.location.kind != "csv" or self.location.path is None or not rows:
            first = 1 if self.location.rows is None else 1 + self.location.rows[0]
            return {row: f"row {first + row}" for row in rows}
        places = csv_text.first_lines(self.location, set(rows), len(self._header))
        return {row: places.get(row, f"record {row + 1}") for row in rows}


def _quoted(text: str) -> str:
    """As TOML writes it."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
