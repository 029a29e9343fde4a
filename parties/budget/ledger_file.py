"""The ledger's SQLite file: where it is, its tables in every version, how it comes to be, and a transaction on it.

Durable on return: synchronous is EXTRA, the removal of the journal included. Mode 0600 from the first byte
on.

SQLite takes an empty file for a new database, and one that is missing too: what was spent would be forgotten
without a word. So a ledger has its tables before it has its name (`parties/new_file.py`), and what bears the name
without them is refused, as is a missing ledger beside which its runs or an unfinished transaction have left
something. Nothing here opens a file that may be a ledger but SQLite: closing it would end the locks that other
threads' transactions have on it.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.process.resources import lacking
from parties.new_file import put_in_place, sync

MIN_BYTES = 100
"""Of a ledger: the header of its SQLite file."""
OPEN_RUNS = ".open"
"""After the ledger's name: the folder of its open runs (`open_run.py`)."""
_TRACES = ("-journal", "-wal", OPEN_RUNS)  # what is beside a ledger and never there before it
_MAGIC = b"SQLite format 3\0"
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


class NoLedger(BudgetRefused):
    """There is a file of the ledger's name, and nothing in it that could be one."""


def default_path() -> Path:
    """`COSYNTH_LEDGER`, else cosynth/ledger.db under the user's data directory (`XDG_DATA_HOME`,
    ~/.local/share)."""
    if named := os.environ.get("COSYNTH_LEDGER"):
        return Path(named)
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share") / "cosynth" / "ledger.db"


def exists(path: Path) -> bool:
    """Whether there is a ledger. Raises `BudgetRefused` if there is none where one has been, `OutOfResources` if
    nobody can say."""
    with _ledger_errors(path):
        return _existing(path) is not None


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """One immediate transaction on a connection of its own: no state is shared between threads or survives a
    failure.

    Creates the file, or brings an older one to this version. Raises `BudgetRefused`, `NoLedger` for what is
    empty or cut.
    """
    with _ledger_errors(path):
        file = _existing(path)
        if file is None:
            file = _real(path)
            _create(file)
        with _transaction(path, file) as database:
            yield database
            database.execute("COMMIT")


def rehearse(path: Path) -> None:
    """Try a transaction, leaving nothing behind. Raises `BudgetRefused` as a run would.

    A file that is not there yet is made in a folder of its own beside, so that no run that makes it meanwhile
    loses it.
    """
    with _ledger_errors(path):
        if (file := _existing(path)) is not None:
            with _transaction(path, file) as database:
                database.execute(f"PRAGMA user_version = {_VERSION}")  # rolled back, as all of it
            return
        file = _real(path)
        there = next(folder for folder in file.parents if os.path.lexists(folder))
        with TemporaryDirectory(prefix=".ledger-", dir=there) as folder:
            trial = Path(folder) / file.relative_to(there)
            _create(trial)
            with _transaction(path, trial):
                pass


def is_whole(path: Path) -> bool:
    """Whether SQLite finds the whole ledger in its file. Raises `OutOfResources`, and `BudgetRefused` for what is no
    ledger, as a run would.

    What a crash has left of a transaction is undone before: that file is whole.
    """
    file = _real(path)
    with _ledger_errors(path), closing(_connected(file)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
            return not _is_cut(file, database) and bool(
                database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            )
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_NOTADB,
            ):
                return False
            raise


@contextmanager
def _transaction(path: Path, file: Path) -> Iterator[sqlite3.Connection]:
    """A transaction on tables of this version, rolled back unless it is committed. path: as the user knows it."""
    with closing(_connected(file)) as database:
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("BEGIN IMMEDIATE")
        if _is_cut(file, database):
            raise _damaged(path)
        _migrate(path, database)
        yield database


def _connected(file: Path) -> sqlite3.Connection:
    """To an existing file: SQLite would make one that is missing."""
    return sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE_S, isolation_level=None)


@contextmanager
def _ledger_errors(path: Path) -> Iterator[None]:
    """What goes wrong with the file, as `OutOfResources` or `BudgetRefused`."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CANTOPEN:  # it does not say why
            folder = _real(path).parent
            if folder.is_dir() and not os.access(folder, os.W_OK):
                error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if (lacked := lacking(error, f"The ledger {path}", ", so nothing can be charged to it")) is not None:
            raise lacked from None
        reason = type(error).__name__
    else:
        return
    if code == sqlite3.SQLITE_CORRUPT:
        raise _damaged(path)
    raise BudgetRefused(
        f"The ledger {path} cannot be used ({reason}), so nothing can be charged to it; check that it is a Cosynth ledger, and "
        "that this user may write it."
    )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _existing(path: Path) -> Path | None:
    """The ledger's file, links followed; None if there is none yet. Raises `NoLedger`, `BudgetRefused`, OSError,
    ValueError."""
    file = _real(path)
    try:
        status = os.stat(file)
    except FileNotFoundError:
        trace = _trace(path, file)
        if trace is None:
            _refuse_astray(path, file)
            return None
        try:  # another process may have created the ledger, and used it, between these looks
            status = os.stat(file)
        except FileNotFoundError:
            raise BudgetRefused(
                f"The ledger {path} is missing, and {trace} shows that there was one; restore it from a backup, or remove "
                f"{trace.name}, too, if no run on real data was ever charged there."
            ) from None
    if stat.S_ISDIR(status.st_mode):  # SQLite says so
        return file
    if not stat.S_ISREG(status.st_mode):  # to read a pipe is to wait for ever
        raise BudgetRefused(f"{path} is a pipe or a device; name a file for the ledger.")
    if status.st_size < MIN_BYTES and _MAGIC.startswith(
        file.read_bytes()[: len(_MAGIC)]
    ):  # else it is another's
        raise _no_ledger(path)
    if status.st_nlink > 1:  # who created it was killed right then
        _discard_parts(file)
    return file


def _trace(path: Path, file: Path) -> Path | None:
    """What shows that there has been a ledger."""
    for beside in dict.fromkeys((file, path)):
        for suffix in _TRACES:
            trace = beside.with_name(beside.name + suffix)
            if os.path.lexists(trace):
                return trace
    return None


def _refuse_astray(path: Path, file: Path) -> None:
    """Raise `BudgetRefused` for a link into a folder that does not exist: a disk that is not mounted."""
    if not file.parent.is_dir() and any(os.path.islink(one) for one in (path, *path.parents)):
        raise BudgetRefused(
            f"The ledger {path} is to be in {file.parent}, as a link says, and that folder does not exist; see that its disk is "
            "there, or make the folder for a new ledger."
        )


def _is_cut(file: Path, database: sqlite3.Connection) -> bool:
    """Whether a part of the last page is missing, which SQLite would read as zeros. At the beginning of a
    transaction."""
    if database.execute("PRAGMA journal_mode").fetchone() == ("wal",):  # as another program left it
        return False  # pages may be in a file of their own
    (pages,), (size,) = (
        database.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "page_size")
    )
    return os.stat(file).st_size < int(pages) * int(size)


def _damaged(path: Path) -> BudgetRefused:
    return BudgetRefused(
        f"The ledger {path} is damaged, so nothing can be charged to it; restore it from a backup."
    )


def _no_ledger(path: Path) -> NoLedger:
    return NoLedger(
        f"{path} is empty or cut, and no ledger; restore it from a backup, or remove it if no run was ever charged there."
    )


def _create(file: Path) -> None:
    """A ledger of this version, durable, that only its owner can read; nothing where another process is first.

    Whoever has put his in place removes what crashes have left, and what others are about to put there: they find
    that there is a ledger.
    """
    _make_folder(file.parent)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
    try:
        _build(part)
        put_in_place(part, file)
    except (sqlite3.Error, OSError):
        if not os.path.lexists(file):  # else a transaction on it will say what is wrong, if anything is
            raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    _discard_parts(file)


def _make_folder(folder: Path) -> None:
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in missing:
        with suppress(PermissionError):  # it may be written and not read: left to the system
            sync(each.parent)


def _build(part: Path) -> None:
    """A whole ledger in a new file, on disk on return. Raises OSError or `sqlite3.Error`."""
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # the umask may hide more; a file system without modes has none to set
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    with closing(_connected(part)) as database:
        database.execute("PRAGMA journal_mode = OFF")  # nothing to go back to: a failure leaves no ledger
        database.execute("BEGIN IMMEDIATE")
        _execute(database, _SCHEMA)
        database.execute(f"PRAGMA user_version = {_VERSION}")
        database.execute("COMMIT")
    descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard_parts(file: Path) -> None:
    for part in file.parent.glob(f".{glob.escape(file.name)}.*.part"):
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _migrate(path: Path, database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise BudgetRefused(f"The ledger {path} was written by a newer version of Cosynth; update this one.")
    if version == 0 and database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        raise _no_ledger(path)
    if version == 0:
        raise BudgetRefused(f"{path} is a database of another program; name another file for the ledger.")
    if version != _VERSION:
        for old in range(version, _VERSION):
            _execute(database, _MIGRATIONS[old])
        database.execute(f"PRAGMA user_version = {_VERSION}")


def _execute(database: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";")[:-1]:
        database.execute(statement)
