"""The ledger's SQLite file: where it is, its tables in every version, and a transaction on it.

Durable on return: synchronous is EXTRA, the removal of the journal included. Mode 0600 from the first byte
on.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.process.resources import lacking

_VERSION = 6
_PATIENCE_S = 30.0  # how long to wait for another run's transaction, which takes milliseconds

_REFUSALS = """
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, study TEXT NOT NULL, digest TEXT NOT NULL,
    time REAL NOT NULL, code INTEGER NOT NULL, adjacency TEXT NOT NULL, unit TEXT NOT NULL, counterparties TEXT NOT NULL,
    domain TEXT NOT NULL, max_rows INTEGER NOT NULL
);
"""
_COLLECTIONS = """
CREATE TABLE collections (
    study TEXT NOT NULL, party TEXT NOT NULL, list TEXT NOT NULL, run TEXT, time REAL NOT NULL, PRIMARY KEY (study, party)
);
"""
_SCHEMA = (
    """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, run TEXT NOT NULL, study TEXT NOT NULL,
    digest TEXT NOT NULL, time REAL NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL,
    unit TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL, counterparties TEXT NOT NULL, computes INTEGER NOT NULL,
    aligns INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'settled')), size_rho TEXT NOT NULL DEFAULT '0',
    size_delta TEXT NOT NULL DEFAULT '0', domain TEXT NOT NULL DEFAULT '', max_rows INTEGER NOT NULL DEFAULT 0,
    curve TEXT NOT NULL DEFAULT '', waves TEXT NOT NULL DEFAULT '[]',
    apart TEXT NOT NULL DEFAULT '[]',
    UNIQUE (dataset, run)
);
CREATE TABLE events (
    id TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), what TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL,
    detail TEXT NOT NULL, time REAL NOT NULL
);
"""
    + _REFUSALS
    + _COLLECTIONS
)
_MIGRATIONS = {  # from each older version to the next
    1: """
ALTER TABLE runs ADD COLUMN size_rho TEXT NOT NULL DEFAULT '0';
ALTER TABLE runs ADD COLUMN size_delta TEXT NOT NULL DEFAULT '0';
""",
    2: """
ALTER TABLE runs ADD COLUMN domain TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN max_rows INTEGER NOT NULL DEFAULT 0;
"""
    + _REFUSALS,
    3: _COLLECTIONS + "ALTER TABLE runs ADD COLUMN curve TEXT NOT NULL DEFAULT '';",
    4: "ALTER TABLE runs ADD COLUMN waves TEXT NOT NULL DEFAULT '[]';",
    5: "ALTER TABLE runs ADD COLUMN apart TEXT NOT NULL DEFAULT '[]';",
}


def default_path() -> Path:
    """`COSYNTH_LEDGER`, else cosynth/ledger.db under the user's data directory (`XDG_DATA_HOME`,
    ~/.local/share)."""
    if named := os.environ.get("COSYNTH_LEDGER"):
        return Path(named)
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share") / "cosynth" / "ledger.db"


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """One immediate transaction on a connection of its own: no state is shared between threads or survives a
    failure.

    Creates the file, or brings an older one to this version. Raises `BudgetRefused`.
    """
    with _ledger_errors(path):
        _create(path)
        with _transaction(path) as database:
            yield database
            database.execute("COMMIT")


def rehearse(path: Path) -> None:
    """Try a transaction, leaving nothing behind. Raises `BudgetRefused` as a run would.

    A file that is not there yet is made in a folder of its own beside, so that no run that makes it meanwhile
    loses it.
    """
    with _ledger_errors(path):
        file = Path(os.path.realpath(path))
        if os.path.lexists(file):
            with _transaction(file) as database:
                database.execute(f"PRAGMA user_version = {_VERSION}")  # rolled back, as all of it
            return
        there = next(folder for folder in file.parents if os.path.lexists(folder))
        with TemporaryDirectory(prefix=".ledger-", dir=there) as folder:
            trial = Path(folder) / file.relative_to(there)
            _create(trial)
            with _transaction(trial):
                pass


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction on tables of this version, rolled back unless it is committed."""
    database = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
    try:
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("BEGIN IMMEDIATE")
        _migrate(path, database)
        yield database
    finally:
        database.close()


@contextmanager
def _ledger_errors(path: Path) -> Iterator[None]:
    """What goes wrong with the file, as `OutOfResources` or `BudgetRefused`."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError) as error:
        closed = (
            getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN
        )  # it does not say why
        if closed and path.parent.is_dir() and not os.access(path.parent, os.W_OK):
            error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if (lacked := lacking(error, f"The ledger {path}", ", so nothing can be charged to it")) is not None:
            raise lacked from None
        reason = type(error).__name__
    else:
        return
    raise BudgetRefused(
        f"The ledger {path} cannot be used ({reason}), so nothing can be charged to it; check that it is a Cosynth ledger, and "
        "that this user may write it."
    )


def _create(path: Path) -> None:
    """An empty file that only its owner can read, before SQLite opens it (its journal inherits the mode)."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _migrate(path: Path, database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise BudgetRefused(f"The ledger {path} was written by a newer version of Cosynth; update this one.")
    if version == 0 and database.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise BudgetRefused(f"{path} is a database of another program; name another file for the ledger.")
    statements = _SCHEMA if version == 0 else "".join(_MIGRATIONS[old] for old in range(version, _VERSION))
    for statement in statements.split(";")[:-1]:
        database.execute(statement)
    if version != _VERSION:
        database.execute(f"PRAGMA user_version = {_VERSION}")
