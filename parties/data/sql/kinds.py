"""What a column of a database holds, as far as codes need to know: the same for the stream and for
statements.

    text        as it is, without the blanks that fill up a char(n)
    integer     int64 or uint64
    decimal     numeric(p, s): float64, correctly rounded; DuckDB hands it on as decimal128
    double      float64; a single is widened
    boolean, date
    timestamp   without a zone, to the microsecond

Anything else can be neither streamed nor counted: a view can cast it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from parties.data.libraries import pa, sa

Group = Literal["text", "integer", "decimal", "double", "boolean", "date", "timestamp", ""]
MAX_INT64_DIGITS: Final = 18
STORAGE: Final = {"text": ("text",), "integer": ("integer",), "double": ("integer", "real")}
"""Where each value has a type of its own (SQLite), which ones a column of each group may hold."""


@dataclass(frozen=True)
class Kind:
    """group: "" if its values have no codes. name: the database's, for sentences. precision, scale: of a
    decimal; precision 0: not limited. padded: filled up with blanks. exact: whether a decimal reaches the
    coder as a decimal. signed: of an integer.
    """

    group: Group
    name: str
    precision: int = 0
    scale: int = 0
    padded: bool = False
    exact: bool = False
    signed: bool = True

    @property
    def arrow(self) -> pa.DataType:
        """The type in which the coder meets the values."""
        if self.group == "decimal":
            return pa.decimal128(self.precision, self.scale) if self.exact else pa.float64()
        return {
            "text": pa.string(),
            "integer": pa.int64() if self.signed else pa.uint64(),
            "double": pa.float64(),
            "boolean": pa.bool_(),
            "date": pa.date32(),
            "timestamp": pa.timestamp("us"),
            "": pa.null(),
        }[self.group]


def of_number(name: str, precision: int | None, scale: int | None) -> Kind:
    """A numeric(p, s)."""
    if precision and not scale and precision <= MAX_INT64_DIGITS:
        return Kind("integer", name, precision)
    return Kind("decimal", name, precision or 0, scale or 0)


def of_arrow(kind: pa.DataType) -> Kind:
    """A column that its database hands on in this type."""
    name = str(kind)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return Kind("decimal", name, kind.precision, kind.scale, exact=True)
    if pa.types.is_integer(kind):
        return Kind("integer", name, signed=pa.types.is_signed_integer(kind))
    tests: tuple[tuple[Group, bool], ...] = (
        ("text", pa.types.is_string(kind) or pa.types.is_large_string(kind)),
        ("double", pa.types.is_floating(kind)),
        ("boolean", pa.types.is_boolean(kind)),
        ("date", pa.types.is_date(kind)),
        ("timestamp", pa.types.is_timestamp(kind) and kind.tz is None and kind.unit != "ns"),
    )
    return Kind(next((group for group, holds in tests if holds), ""), name)


def of_postgres(read_as: str, name: str) -> Kind:
    """read_as: what `parties/data/engines/postgres.py` reads the type as."""
    groups: dict[str, Group] = {
        "string": "text",
        "int64": "integer",
        "double": "double",
        "bool": "boolean",
        "date32": "date",
        "timestamp": "timestamp",
    }
    return Kind(groups.get(read_as, ""), name)


def of_sqlalchemy(kind: Any, scheme: str) -> Kind:
    """A type as SQLAlchemy reflects it."""
    name = type(kind).__name__.lower()
    if scheme == "sqlite":
        return _of_sqlite(kind, name)
    if name in ("year", "rowid", "urowid", "interval", "bit") and scheme != "mssql":
        return Kind("", name)
    if isinstance(kind, sa.Boolean):
        return Kind("boolean", name)
    if name == "bit":
        return Kind("boolean", name)
    if isinstance(kind, sa.Integer):
        return Kind("integer", name, signed=not getattr(kind, "unsigned", False))
    if isinstance(kind, sa.Float) or name in ("float", "real", "double", "binary_double", "binary_float"):
        return Kind("double", name)
    if isinstance(kind, sa.Numeric):
        return of_number(name, kind.precision, kind.scale)
    if isinstance(kind, sa.DateTime) or name in ("timestamp", "timestamp_ntz", "datetime2", "smalldatetime"):
        zoned = getattr(kind, "timezone", False) or name in (
            "timestamp_tz",
            "timestamp_ltz",
            "datetimeoffset",
        )
        zoned = zoned or (scheme == "bigquery" and name == "timestamp")
        return Kind("" if zoned else "timestamp", name)
    if isinstance(kind, sa.Date):
        return Kind("date", name)
    if isinstance(kind, sa.String) and not isinstance(kind, sa.LargeBinary):
        return Kind("text", name, padded=name in ("char", "nchar"))
    return Kind("", name)


def _of_sqlite(kind: Any, name: str) -> Kind:
    """SQLite keeps what it is given: a declared type says what is expected of each value, and values of
    others are refused."""
    if isinstance(kind, sa.Integer | sa.Boolean):
        return Kind("integer", name)
    if isinstance(kind, sa.Numeric | sa.Float):
        return Kind("double", name)
    if isinstance(kind, sa.String | sa.Date | sa.DateTime):
        return Kind("text", name)
    return Kind("", name)
