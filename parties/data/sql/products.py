"""What differs from database to database. The SQL itself is SQLAlchemy's; here stands what it does not know:
how a text is compared byte by byte, how an address becomes a driver, in which transaction a table is read.

Texts. A study's values are equal exactly: capitals and blanks count. MySQL, MariaDB and SQL Server compare by
the column's collation, which may take "A" for "a" and, of most collations, "a " for "a": there a text is
compared as its bytes. In the others a collation that does not fold is named.

Only MySQL, MariaDB, SQLite, PostgreSQL and DuckDB are tried against the database itself; of the others, the
statements are checked by another parser of their dialects (`docs/howto/databases.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from parties.data.libraries import mssql, mysql, sa

Expression = Any
"""A column element of SQLAlchemy, which is there only with the extra."""


def _bound(text: str) -> Expression:
    return sa.literal(text, sa.Text())


def _bound_double(value: float) -> Expression:
    return sa.literal(value, sa.Double())


def _midnight(moment: Expression) -> Expression:
    return sa.cast(sa.cast(moment, sa.Date()), sa.DateTime())


def _doubled(number: Expression) -> Expression:
    return sa.cast(number, sa.Double())


@dataclass(frozen=True)
class Product:
    """driver: SQLAlchemy's name of dialect and driver. extra: what brings it. max_values: that one statement
    may be given.

    exact: a text to be compared byte by byte. begin: statements that begin the transaction. password: the
    environment's variable for an address without one; "": the driver has its own ways. given, given_double: a
    bound text beside `exact`; a bound double. double: a number as the double that the stream hands on.
    patterns: whether it has regular expressions. nan: whether a double is no number; None: none is. infinite:
    whether doubles may be. day: the beginning of a time's day. broken_days: whether a date may have a month
    or a day 0. unquotable: signs that no name may have. options: for the driver. storage: whether each value
    has a type of its own. snapshot: whether all statements see the same rows, of any table. empty_is_null:
    whether the empty text is NULL, so that to compare with it is true of no row and false of none. hashed:
    SHA-256 of a text, as a text; None: it has none, or was never tried.
    """

    name: str
    driver: str
    extra: str
    max_values: int
    exact: Callable[[Expression], Expression]
    begin: tuple[str, ...] = ()
    password: str = ""
    given: Callable[[str], Expression] = _bound
    double: Callable[[Expression], Expression] = _doubled
    patterns: bool = True
    given_double: Callable[[float], Expression] = _bound_double
    nan: Callable[[Expression], Expression] | None = None
    infinite: bool = False
    day: Callable[[Expression], Expression] = _midnight
    unquotable: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    broken_days: bool = False
    storage: bool = False
    snapshot: bool = True
    empty_is_null: bool = False
    hashed: Callable[[Expression], Expression] | None = None


def _collated(name: str) -> Callable[[Expression], Expression]:
    def exact(text: Expression) -> Expression:
        return sa.collate(text, name)

    return exact


def _as_text(text: Expression) -> Expression:
    return sa.collate(sa.cast(text, sa.Text()), "C")


def _bytes_of_mysql(text: Expression) -> Expression:
    return sa.cast(sa.cast(text, mysql.CHAR(charset="utf8mb4")), sa.LargeBinary())


def _bytes_of_mssql(text: Expression) -> Expression:
    return sa.cast(sa.cast(text, mssql.NVARCHAR("max")), mssql.VARBINARY("max"))


def _through_text(number: Expression) -> Expression:
    """As COPY writes it: the shortest text of a real is another double than the real widened."""
    return sa.cast(sa.cast(number, sa.Text()), sa.Double())


def _binary_double(number: Expression) -> Expression:
    return sa.func.to_binary_double(number)


def _text_double(value: float) -> Expression:
    """Oracle's numbers end before doubles do."""
    return sa.func.to_binary_double(sa.literal(repr(value), sa.String()))


def _equals_nan(number: Expression) -> Expression:
    return number == sa.cast(sa.literal("NaN", sa.String()), sa.Double())


def _is_nan(number: Expression) -> Expression:
    return sa.func.is_nan(number)


def _is_nan_of_oracle(number: Expression) -> Expression:
    return number.op("IS", is_comparison=True)(sa.literal_column("NAN"))


def _truncated(moment: Expression) -> Expression:
    return sa.func.trunc(moment)


def _without_collation(text: Expression) -> Expression:
    return sa.func.collate(text, sa.literal_column("''"))


def _only_encrypted(connection: Any) -> None:
    """For ways to log in by which the server is told the password itself. No handler of ours: the driver has
    them."""
    if not connection._secure:
        raise ConnectionRefusedError("The server asks for the password itself without TLS.")


def _sha256(text: Expression) -> Expression:
    return sa.func.sha256(text)


def _sha256_of_postgres(text: Expression) -> Expression:
    def literal(value: str) -> Expression:
        return sa.literal_column(f"'{value}'")

    return sa.func.encode(sa.func.sha256(sa.func.convert_to(text, literal("UTF8"))), literal("hex"))


def _sha256_of_mysql(text: Expression) -> Expression:
    return sa.func.sha2(text, sa.literal_column("256"))


_MYSQL = Product(
    "MySQL or MariaDB",
    "mysql+pymysql",
    "mysql",
    60_000,
    _bytes_of_mysql,
    (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ),
    "MYSQL_PWD",
    options={
        "init_command": "SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'",
        "charset": "utf8mb4",
        "local_infile": False,  # or the server may ask for any file of this machine
        "auth_plugin_map": {"mysql_clear_password": _only_encrypted, "dialog": _only_encrypted},
    },
    broken_days=True,
    snapshot=False,  # InnoDB has one, MyISAM and Aria have none
    hashed=_sha256_of_mysql,
)
PRODUCTS: Final = {
    "postgres": Product(
        "PostgreSQL",
        "postgresql+psycopg",
        "postgres",
        60_000,
        _as_text,
        double=_through_text,
        nan=_equals_nan,
        infinite=True,
        hashed=_sha256_of_postgres,
    ),
    "duckdb": Product(
        "DuckDB", "postgresql", "warehouse", 60_000, _as_text, nan=_equals_nan, infinite=True, hashed=_sha256
    ),
    "sqlite": Product(
        "SQLite",
        "sqlite+pysqlite",
        "warehouse",
        32_000,
        _collated("BINARY"),
        ("BEGIN",),
        infinite=True,
        storage=True,
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "mssql": Product(
        "SQL Server",
        "mssql+pyodbc",
        "sqlserver",
        2_000,
        _bytes_of_mssql,
        ("SET TRANSACTION ISOLATION LEVEL SNAPSHOT",),
        "SQLCMDPASSWORD",
        given=lambda text: _bytes_of_mssql(_bound(text)),
        patterns=False,
    ),
    "oracle": Product(
        "Oracle",
        "oracle+oracledb",
        "oracle",
        60_000,
        lambda text: text,
        ("ALTER SESSION SET NLS_COMP = BINARY NLS_SORT = BINARY", "SET TRANSACTION READ ONLY"),
        "ORACLE_PASSWORD",
        double=_binary_double,
        given_double=_text_double,
        nan=_is_nan_of_oracle,
        infinite=True,
        day=_truncated,
        empty_is_null=True,
    ),
    "snowflake": Product(
        "Snowflake",
        "snowflake",
        "snowflake",
        16_000,
        _without_collation,
        ("ALTER SESSION SET TIMEZONE = 'UTC'",),
        "SNOWFLAKE_PASSWORD",
        nan=_equals_nan,
        infinite=True,
        snapshot=False,
    ),
    "bigquery": Product(
        "BigQuery",
        "bigquery",
        "bigquery",
        10_000,
        _without_collation,
        nan=_is_nan,
        infinite=True,
        unquotable='`"\\\n',  # its dialect does not escape them, and no column or table of BigQuery has them in its name
        snapshot=False,
    ),
}
"""By the scheme of the address."""
