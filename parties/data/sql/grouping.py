"""Who runs a statement on an open table: PostgreSQL and DuckDB over the connection that reads them, others
through SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from parties.data.libraries import postgresql, sa
from parties.data.sql.kinds import Kind, of_arrow, of_postgres
from parties.data.sql.products import PRODUCTS, Expression, Product
from parties.data.table_names import parts

if TYPE_CHECKING:
    from parties.data.engines.duckdb_engine import DuckDB
    from parties.data.engines.duckdb_view import View
    from parties.data.engines.postgres import Server
    from parties.data.sql.statements import Statement

Row = tuple[Any, ...]


class Grouping(Protocol):
    """An open table that can be counted where it is. kinds: of its columns, by the engine's names for them."""

    @property
    def product(self) -> Product:
        """What the database is."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """What its columns hold."""

    @property
    def relation(self) -> Expression:
        """What FROM names."""

    def fetch(self, statement: Statement, most: int) -> list[Row]:
        """Up to `most` rows of a statement's result."""


def column(name: str) -> Expression:
    """A column by exactly this name."""
    return sa.column(sa.sql.quoted_name(name, True))


def relation(table: str, dialect: Any) -> Expression:
    """A table by the parts of its name, each quoted by the dialect."""
    return named(".".join(map(dialect.identifier_preparer.quote_identifier, parts(table))))


def named(quoted: str) -> Expression:
    """A table by a name that is quoted already."""
    return sa.table(sa.sql.quoted_name(quoted, False))


class OverDuckDB:
    """See `Grouping`. DuckDB reads PostgreSQL's dialect."""

    product = PRODUCTS["duckdb"]

    def __init__(self, engine: DuckDB | View) -> None:
        self._engine = engine
        self._dialect: Any = postgresql.dialect(paramstyle="numeric_dollar")
        self.relation = named(engine.table)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """See `Grouping`."""
        return {field.name: of_arrow(field.type) for field in self._engine.schema()}

    def fetch(self, statement: Statement, most: int) -> list[Row]:
        """See `Grouping`."""
        compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        return self._engine.query(compiled.string, values, most)


class OverPostgres:
    """See `Grouping`."""

    product = PRODUCTS["postgres"]

    def __init__(self, engine: Server) -> None:
        self._engine, self._dialect = engine, postgresql.psycopg.dialect()
        self.relation = relation(engine.table, self._dialect)
        self.kinds = {name: of_postgres(*known) for name, known in engine.types.items()}

    def fetch(self, statement: Statement, most: int) -> list[Row]:
        """See `Grouping`."""
        compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return self._engine.query(compiled.string, compiled.params, most)
