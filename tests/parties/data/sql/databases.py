"""The same table in each database that can be run here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parties.data.location import Location, locate
from tests.mariadb import MariaDB
from tests.mariadb import available as no_mariadb
from tests.parties.data.sql.hard_cases import TYPES
from tests.parties.data.tables import in_duckdb
from tests.postgres import Postgres
from tests.postgres import available as no_postgres

DATABASES = ("duckdb", "sqlite", "postgres", "mariadb")
Execute = Callable[[str, Sequence[Any]], None]
_numbers = count()


def quoted(name: str, mark: str = '"') -> str:
    """A name as SQL writes it."""
    return mark + name.replace(mark, mark + mark) + mark


@dataclass(frozen=True)
class Store:
    """A database. name: of `DATABASES`. execute: a statement with values, if it has any."""

    name: str
    url: str
    execute: Execute
    placeholder: str = "?"
    mark: str = '"'

    def table(self, columns: Mapping[str, tuple[str, Sequence[Any]]], name: str | None = None) -> Location:
        """A new table with these columns: type and values."""
        name = f"t{next(_numbers)}" if name is None else name
        types = TYPES[self.name]
        made = ", ".join(
            f"{quoted(one, self.mark)} {types.get(kind, kind)}" for one, (kind, _) in columns.items()
        )
        self.execute(f"CREATE TABLE {quoted(name, self.mark)} ({made})", ())
        rows = [
            self._stored(value)
            for row in zip(*(values for _, values in columns.values()), strict=True)
            for value in row
        ]
        places = f"({', '.join([self.placeholder] * len(columns))})"
        many = ", ".join([places] * (len(rows) // len(columns)))
        self.execute(f"INSERT INTO {quoted(name, self.mark)} VALUES {many}", rows)
        return self.at(quoted(name))

    def at(self, table: str, **more: Any) -> Location:
        """A table's place, by its name as a private file writes it."""
        return locate({"url": self.url, "table": table, **more})

    def _stored(self, value: Any) -> Any:
        return float(value) if self.name == "sqlite" and isinstance(value, Decimal) else value


def pushed(location: Location) -> Location:
    """The same, counted where it is."""
    return replace(location, push_down=True)


def open_store(name: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    """One of `DATABASES`; skips where a server is absent."""
    pytest.importorskip("sqlalchemy")
    if name == "duckdb":
        path = folder / "people.duckdb"

        def execute(sql: str, values: Sequence[Any]) -> None:
            with in_duckdb(path) as database:
                database.execute(sql, list(values))

        return Store(name, f"duckdb://{path}", execute)
    if name == "sqlite":
        path = folder / "people.sqlite"

        def in_sqlite(sql: str, values: Sequence[Any]) -> None:
            database = sqlite3.connect(path)
            with database:
                database.execute(sql, values)
            database.close()

        return Store(name, f"sqlite://{path}", in_sqlite)
    if name == "postgres":
        if reason := no_postgres():
            pytest.skip(reason)
        server: Postgres = request.getfixturevalue("postgres")

        def in_postgres(sql: str, values: Sequence[Any]) -> None:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(sql, list(values) or None)

        return Store(name, server.url(), in_postgres, "%s")
    if reason := no_mariadb():
        pytest.skip(reason)
    maria: MariaDB = request.getfixturevalue("mariadb")

    def in_mariadb(sql: str, values: Sequence[Any]) -> None:
        with maria.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql, list(values) or None)

    return Store(name, maria.url(), in_mariadb, "%s", "`")
