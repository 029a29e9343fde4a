"""A table read through SQLAlchemy: MySQL, MariaDB, SQL Server, Oracle, Snowflake, BigQuery, and SQLite's
files.

Read-only and in one transaction, which sees one snapshot where the product has such a thing (`products.py`);
rows come in blocks from the server's cursor. A password stands in the address or in the environment
(`Product.password`), or the driver finds it in files of its own; nothing logs it, and SQLAlchemy is told to
quote no values.

Errors are the drivers' own, which quote records and addresses: `parties/data/source.py` is the only caller
and forwards none of them.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parties.data.engines.postgres import UnknownType
from parties.data.libraries import pa, sa
from parties.data.sql.grouping import Row, column, relation
from parties.data.sql.kinds import STORAGE, Kind, of_sqlalchemy
from parties.data.sql.products import PRODUCTS, Expression, Product
from parties.data.table_names import parts

if TYPE_CHECKING:
    from parties.data.sql.statements import Statement

_LOGGERS = ("sqlalchemy", "snowflake", "google", "oracledb", "pymysql", "urllib3")
"""That may quote statements, values or addresses."""


VIEW_STEPS, STEPS = 10**11, 10**3
"""How many steps of SQLite's machine a view may take in all statements of one opening, about half an hour: it
may have no end. Stored tables have one, and no limit. STEPS: after so many each time it is asked."""
VIEW_S, USUAL_S = 1800.0, 0.01
"""CPU seconds that steps which take longer than most may take beyond those, and what so many (`STEPS`) take
at most otherwise, with what is done with their rows."""
MAX_VALUE, MAX_PATTERN = 10**5, 1000
"""Bytes of a value in a view, and of a pattern: a step works at one value, and is never interrupted."""


class ForeignValue(Exception):
    """A value is not of its column's type. Says no more."""


class Database:
    """An open table or view. See `duckdb_engine.Engine` and `grouping.Grouping`.

    path: of a file; None: the address is a server's.
    """

    ordered = False

    def __init__(self, url: str, table: str, path: Path | None = None) -> None:
        for name in _LOGGERS:
            _silence(logging.getLogger(name))
        self._scheme = url.partition("://")[0]
        self.product = PRODUCTS[self._scheme]
        self._engine: Any = None
        self._connection: Any = None
        try:
            self._engine = self._created(url, path, parts(table)[-1])
            self._connection = self._engine.connect()
            for statement in self.product.begin:
                self._connection.exec_driver_sql(statement)
            self._check_names(parts(table))
            self.relation = relation(table, self._engine.dialect)
            nothing = self._connection.execute(
                sa.select(sa.text("*")).select_from(self.relation).where(sa.text("1 = 0"))
            )
            self.fields: tuple[str, ...] = tuple(each[0] for each in nothing.cursor.description)
            nothing.close()
            self._check_names(self.fields)
            self._name = parts(table)
            self.kinds  # noqa: B018 - in the transaction, and before anything is asked
        except BaseException:
            self.close()
            raise

    def _check_names(self, names: Sequence[str]) -> None:
        """Raise ValueError for a name that the dialect cannot quote."""
        if any(mark in name for name in names for mark in self.product.unquotable):
            raise ValueError("A name cannot be quoted.")

    def _created(self, url: str, path: Path | None, table: str) -> Any:
        options: dict[str, Any] = {"hide_parameters": True, "poolclass": sa.pool.NullPool}
        if path is not None:
            return sa.create_engine("sqlite://", creator=lambda: _file(path, table), **options)
        made = sa.engine.make_url(url)
        made = made.set(drivername=self.product.driver)
        if made.password is None and (password := os.environ.get(self.product.password or " ")):
            made = made.set(password=password)
        return sa.create_engine(made, connect_args=dict(self.product.options), **options)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """See `Grouping`."""
        *schema, table = self._name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types that SQLAlchemy does not know: so they are here
            inspector = sa.inspect(self._connection)
            normal = getattr(self._engine.dialect, "normalize_name", lambda name: name)
            upper = self._engine.dialect.requires_name_normalize
            found = inspector.get_columns(
                normal(table) if upper else table,
                (normal(".".join(schema)) if upper else ".".join(schema)) or None,
            )
        known = {each["name"]: of_sqlalchemy(each["type"], self._scheme) for each in found}
        return {
            field: known.get(field) or known.get(normal(field)) or Kind("", "unknown")
            for field in self.fields
        }

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """See `Engine`. Raises `UnknownType`."""
        for field in fields:
            if not self.kinds[field].group:
                raise UnknownType(field, self.kinds[field].name)
        return self._blocks(fields, rows)

    def _blocks(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        kinds = [self.kinds[field] for field in fields]
        chosen = sa.select(
            *(self._value(field).label(f"c{place}") for place, field in enumerate(fields))
        ).select_from(self.relation)
        with self._connection.execution_options(stream_results=True, yield_per=rows).execute(
            chosen
        ) as result:
            for block in result.partitions(rows):
                columns = zip(*block, strict=True)
                arrays = [
                    pa.array([None if value is None else _read(value, kind) for value in values], kind.arrow)
                    for values, kind in zip(columns, kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=[f"c{place}" for place in range(len(fields))])

    def _value(self, field: str) -> Expression:
        """A column as the stream selects it: without a type, so that the driver's own values come."""
        kind, value = self.kinds[field], column(field)
        if kind.group == "double" and not self.product.storage:
            return sa.type_coerce(self.product.double(value), sa.types.NullType())
        return trimmed(value, kind)

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `Engine`. Pushed down: numbers come back. Raises `UnknownType`, `ForeignValue`."""
        kind = self.kinds[field]
        if self.product.storage:
            if not kind.group:
                raise UnknownType(field, kind.name)
            ((foreign,),) = self.fetch(foreign_identifiers(self.relation, field, kind, self.product), 1)
            if foreign:
                raise ForeignValue
        above, unknown = unit_statements(self.relation, field, kind, self.product, bound)
        ((many,),) = self.fetch(above, 1)
        ((without,),) = self.fetch(unknown, 1)
        return bool(many), bool(without)

    def fetch(self, statement: Statement, most: int) -> list[Row]:
        """See `Grouping`."""
        with self._connection.execute(statement) as result:
            return [tuple(row) for row in result.fetchmany(most)]

    def close(self) -> None:
        """See `Engine`."""
        for each in (self._connection, self._engine):
            with suppress(Exception):  # nothing was written: there is nothing to lose
                if each is not None:
                    each.close() if each is self._connection else each.dispose()


class _Steps:
    """What a view has taken so far; called after `STEPS` each, and true when it is to be given up."""

    def __init__(self) -> None:
        self._steps, self._slow_s = 0, 0.0
        self._seen = threading.get_ident(), time.thread_time()

    def __call__(self) -> bool:
        self._steps += STEPS
        seen = threading.get_ident(), time.thread_time()
        if seen[0] == self._seen[0]:
            self._slow_s += max(0.0, seen[1] - self._seen[1] - USUAL_S)
        self._seen = seen
        return self._steps > VIEW_STEPS or self._slow_s > VIEW_S


def _file(path: Path, table: str) -> sqlite3.Connection:
    """A SQLite database for reading, which gives up what is no stored table if it takes too long."""
    found = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    if not _is_stored(found, table):
        found.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        found.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)
        found.set_progress_handler(_Steps(), STEPS)
    return found


def _is_stored(database: sqlite3.Connection, table: str) -> bool:
    """Whether it is a table whose values are all stored: no view, no module's table, which may read a view,
    and no column that is computed when it is read. Asked by statements, for a file may have tables that are
    called as the functions are."""
    name = "'" + table.replace("'", "''") + "'"
    kinds = [kind for _, _, kind, *_ in database.execute(f"PRAGMA main.table_list({name})")]
    hidden = [row[6] for row in database.execute(f"PRAGMA main.table_xinfo({name})")]
    return kinds == ["table"] and not any(hidden)


def trimmed(value: Expression, kind: Kind) -> Expression:
    """A text without the blanks that fill it up."""
    return sa.func.rtrim(value) if kind.padded else value


def absent(field: str, kind: Kind, product: Product) -> Expression:
    """Whether a row's identifier is NULL or the empty text; true or false of every row."""
    value = trimmed(column(field), kind)
    if product.empty_is_null or not (kind.group == "text" or product.storage):
        return value.is_(None)
    return sa.or_(value.is_(None), product.exact(value) == product.given(""))


def unit_statements(
    relation: Expression, field: str, kind: Kind, product: Product, bound: int
) -> tuple[Statement, Statement]:
    """How many identifiers have more than `bound` rows, and how many rows have none."""
    unit, missing = trimmed(column(field), kind), absent(field, kind, product)
    if kind.group == "text":
        unit = product.exact(unit)
    inner = sa.select(unit.label("unit")).select_from(relation).where(sa.not_(missing)).subquery("named")
    above = sa.select(inner.c.unit).group_by(inner.c.unit).having(sa.func.count() > bound).subquery("above")
    how_many = sa.select(sa.func.count())
    return how_many.select_from(above), how_many.select_from(relation).where(missing)


def foreign_identifiers(relation: Expression, field: str, kind: Kind, product: Product) -> Statement:
    """How many identifiers are of another type than the column's: 1 and '1' may be one person and are not
    equal."""
    expected = [sa.literal_column(f"'{name}'") for name in STORAGE[kind.group]]
    return (
        sa.select(sa.func.count())
        .select_from(relation)
        .where(sa.not_(absent(field, kind, product)), sa.func.typeof(column(field)).not_in(expected))
    )


def _read(value: Any, kind: Kind) -> Any:
    """A driver's value in the type that the coder meets. Raises `ForeignValue` for what is none."""
    group = kind.group
    if group == "text" and isinstance(value, str):
        return value
    if group == "integer" and isinstance(value, int | Decimal | bool) and int(value) == value:
        return int(value)
    if group in ("double", "decimal") and isinstance(value, int | float | Decimal):
        return float(value)
    if group == "boolean" and value in (0, 1):
        return bool(value)
    if group == "date" and isinstance(value, date) and not isinstance(value, datetime):
        return value
    if group == "timestamp" and isinstance(value, datetime) and value.tzinfo is None:
        return value
    raise ForeignValue


def _silence(logger: logging.Logger) -> None:
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
