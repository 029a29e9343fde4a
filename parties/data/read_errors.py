"""Why a table could not be opened or read to its end, in words of our own.

Libraries' errors quote the offending record, the connection string or both. Of their text only what is
recognised here is kept, and the number of a line; what leaves is a sentence that names the place (without
user and password), the column where it is the study's, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mpc_protocols.errors import DataRefused
from mpc_protocols.process.installation import pip_install
from parties.data.engines import duckdb_view
from parties.data.engines.postgres import UnknownType
from parties.data.harmony.rules import RFC
from parties.data.sql.products import PRODUCTS
from parties.data.sql.server import MAX_VALUE, VIEW_STEPS

if TYPE_CHECKING:
    from parties.data.location import Location

T = TypeVar("T")

_NOT_UTF_8 = "is not UTF-8 text"
_CSV_FAULTS = {
    "Expected Number of Columns": "does not have as many fields as the header line",
    "unterminated quote": "has a quotation mark that is not closed within 2 MB, or text beside a quoted field",
    "not utf-8": _NOT_UTF_8,
    "invalid unicode": _NOT_UTF_8,
    "Maximum line size": "is longer than 2 MB",
    "reached an invalid state": "is not well-formed CSV, or ends otherwise than those before it (LF and CR LF in one file)",
}
_NO_MEMORY = re.compile("annot allocate memory|failed to map segment")
# SQLSTATE where the server has it, else its own number: MySQL and MariaDB, Oracle
_NO_TABLE = frozenset({"42P01", "3F000", "42S02", "1146", "1049", "ORA-00942"})
_NO_RIGHT = frozenset({"42501", "1142", "1143", "ORA-01031"})
_NO_LOGIN = frozenset({"28000", "1045", "1044", "1698", "ORA-01017"})


def attempt(call: Callable[[], T], explain: Callable[[Exception], str]) -> T:
    """The call's result; a failure becomes a `DataRefused` that holds no trace of the library's error."""
    try:
        return call()
    except Exception as error:  # every library has its own, and all may quote records
        sentence = explain(error)
    raise DataRefused(sentence)  # outside the handler: no __context__


def unopened(location: Location, error: Exception) -> str:
    """Why a table could not be opened."""
    if _out_of_memory(error):
        return _too_large(location)
    if isinstance(error, ImportError):
        return f"{location.label} cannot be read without its driver; install it with {_install(location)}."
    states, kind = _states(error), _kind(error)
    if kind == "NoSuchModuleError":
        return f"{location.label} cannot be read without its dialect; install it with {_install(location)}."
    if (
        kind in ("CatalogException", "NoSuchTableError")
        or states & _NO_TABLE
        or "no such table" in str(error)
    ):
        return (
            f"{location.label} does not exist in this database (capitals count, and a table of another schema is written "
            "schema.table)."
        )
    if states & _NO_RIGHT:
        return f"{location.label} may not be read by this user; the database's owner can grant it SELECT on the table."
    if isinstance(error, duckdb_view.Exhausted | duckdb_view.Endless):
        return unread(location, error)
    if location.kind == "postgres":
        return _unreached(location.label, str(error))
    if location.kind == "server":
        if states & _NO_LOGIN:
            return f"{location.label} cannot be opened: the server does not admit this user with this password; check data.url."
        return f"{location.label} cannot be opened; check the address, the user and its right to read, and that the server runs."
    if location.kind == "sqlite" and ("interrupted" in str(error) or "too big" in str(error)):
        return unread(location, error)
    if location.kind == "sqlite":
        return f"{location.label} cannot be opened: not a SQLite database, or another process is writing it."
    if location.kind == "duckdb" and kind == "PermissionException":
        return f"{location.label} reads files beside its database, and no view may; make a table of what it reads."
    if location.kind == "duckdb":
        return f"{location.label} cannot be opened: not a DuckDB database, or another process has it open for writing."
    return unread(location, error)


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether memory is out, in the words of Python, of DuckDB, or of the system where it cannot load a
    library that is there."""
    while error is not None:
        if isinstance(error, MemoryError) or _kind(error) == "OutOfMemoryException":
            return True
        if isinstance(error, ImportError | OSError) and _NO_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _kind(error: BaseException) -> str:
    """The name of the library's exception."""
    return error.kind if isinstance(error, duckdb_view.ViewFault) else type(error).__name__


def _too_large(location: Location) -> str:
    return f"{location.label} cannot be read in the memory and the space for temporary files that this machine has."


def _install(location: Location) -> str:
    """The command for what reads a database."""
    extras = ["warehouse"]
    if location.kind == "postgres":
        extras = ["postgres", "warehouse"] if location.push_down else ["postgres"]
    elif location.kind == "server":
        extras = [PRODUCTS[location.url.partition("://")[0]].extra]
    return str(pip_install(extras))


def _states(error: Exception) -> frozenset[str]:
    """What a driver calls the fault: an SQLSTATE, or a number of its own."""
    error = getattr(error, "orig", None) or error
    first = error.args[0] if error.args else None
    named = (getattr(error, "sqlstate", None), first, getattr(first, "full_code", None))
    return frozenset(str(one) for one in named if isinstance(one, str | int) and len(str(one)) <= 9)


def unread(location: Location, error: Exception) -> str:
    """What went wrong while reading, in our own words: of the library's text only the line's number is kept."""
    if _out_of_memory(error):
        return _too_large(location)
    if isinstance(error, duckdb_view.Exhausted):
        return (
            f"{location.label} is a view whose computation ended with its process, which may hold "
            f"{duckdb_view.MAX_MEMORY >> 30} GiB of memory; make a table of its rows."
        )
    if isinstance(error, duckdb_view.Endless):
        return (
            f"{location.label} is a view that was computed for {duckdb_view.VIEW_S / 60:g} minutes without coming to its end, "
            "and may have none; make a table of its rows."
        )
    if (
        location.kind == "sqlite"
        and type(error).__name__ == "OperationalError"
        and "interrupted" in str(error)
    ):
        return (
            f"{location.label} is a view that took SQLite {VIEW_STEPS:.0e} steps, or half an hour, without coming to its end, "
            "and may have none; make a table of its rows."
        )
    if location.kind == "sqlite" and type(error).__name__ == "DataError" and "too big" in str(error):
        return f"{location.label} is a view with a value of more than {MAX_VALUE:,} bytes; make a table of its rows."
    if location.kind == "parquet":
        return f"{location.label} is not a whole Parquet file, or it is encrypted or damaged."
    if isinstance(error, UnknownType):
        if str(error.kind).lower() == "nulltype":  # SQLite: also of a view's expressions, cast or not
            return f'{location.label}, column "{error.column}" declares no type; make a table that declares text or numbers.'
        return (
            f'{location.label}, column "{error.column}": data of type {error.kind} cannot be read; a view can convert them '
            "to text or numbers."
        )
    if _states(error) & _NO_RIGHT:
        return f"{location.label} may not be read by this user; the database's owner can grant it SELECT on the table's columns."
    if location.kind == "postgres" and type(error).__name__ == "ArrowInvalid":
        return f"{location.label} holds a date or a moment that is infinite or before the year 1; a view can leave it out."
    if location.kind == "postgres" and type(error).__name__ in (
        "OperationalError",
        "AdminShutdown",
        "CrashShutdown",
    ):
        return f"{location.label}: the connection to the server ended before the last row was read; run again when it is back."
    if type(error).__name__ == "ForeignValue":
        return (
            f"{location.label} holds a value that is not of its column's type (a day that does not exist, a text among numbers); "
            "a view can leave it out or cast it."
        )
    if _kind(error) == "PermissionException":
        return f"{location.label} reads files beside its database, and no view may; make a table of what it reads."
    if location.kind != "csv":
        return f"{location.label} could not be read to its end; check the database and this user's right to read."
    dialect = location.dialect
    if isinstance(error, UnicodeError):
        return f"{location.label} is not {dialect.encoding} text, as [csv] encoding in the private file says; name another."
    text = str(error)
    fault = next(
        (ours for theirs, ours in _CSV_FAULTS.items() if theirs.lower() in text.lower()),
        "is not well-formed CSV",
    )
    line = re.search(r"CSV Error on Line: (\d+)", text)
    where = f"line {line.group(1)}" if line else "a line"
    if fault == _NOT_UTF_8 and dialect.encoding == RFC.encoding:
        return (
            f"{location.label}: {where} {fault}; save the file as UTF-8, or write its encoding under [csv] of the private file, "
            'such as encoding = "windows-1252".'
        )
    return (
        f"{location.label}: {where} {fault}; expected are {dialect.encoding.upper()}, {dialect.words}, and quotation marks as "
        "in RFC 4180 ([csv] in the private file says otherwise)."
    )


def _unreached(label: str, text: str) -> str:
    """Why no connection came about; of the driver's text only what it recognises is kept."""
    if "pg_hba.conf" in text:
        return f"{label} cannot be opened: the server does not admit this user from this machine (pg_hba.conf says whom)."
    if "password" in text or "authentication" in text:
        return f"{label} cannot be opened: the server does not admit this user with this password; check data.url."
    if "SSL" in text or "certificate" in text:
        return f"{label} cannot be opened: no encrypted connection to the server came about; check sslmode in data.url."
    if "does not exist" in text:
        return f"{label} cannot be opened: the server has no such database or user; check data.url."
    return f"{label} cannot be opened; check the address, the user and its right to read, and that the server runs."
