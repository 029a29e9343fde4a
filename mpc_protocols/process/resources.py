"""What a machine lacks, by the errors that the system and SQLite give: room, memory, descriptors, leave to
write.

The sentence of such a failure names the file and what is lacking, never what was to be written.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from mpc_protocols.errors import OutOfResources

_NO_ROOM, _NO_MEMORY = "the disk is full", "memory is used up"
_NO_TEMPORARY = "no temporary directory can be written"
_UNWRITTEN = "what was written did not reach the disk"
_CURES = {
    _NO_ROOM: "free some room",
    _UNWRITTEN: "free some room, or look after the disk",
    _NO_TEMPORARY: "free some room, or name one that can (TMPDIR)",
    "it may not be written": "give this user leave to write there, or name another place",
    "no file descriptors are left": "raise the limit (ulimit -n), or end what holds them",
    _NO_MEMORY: "`plan` says what a run needs",
}
_BY_NUMBER = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _NO_ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "it may not be written"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "no file descriptors are left"),
    errno.ENOMEM: _NO_MEMORY,
}
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: _NO_ROOM,
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_NOMEM: _NO_MEMORY,
    sqlite3.SQLITE_IOERR_NOMEM: _NO_MEMORY,
    sqlite3.SQLITE_IOERR: _UNWRITTEN,
}


def free_memory() -> int | None:
    """Bytes that this machine can still give, as Linux says, and the control group in which this process is; None elsewhere."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024 * int(lines["MemAvailable"].removesuffix("kB")))
    with suppress(OSError, ValueError):
        group = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
        place = Path("/sys/fs/cgroup") / group
        found.append(int((place / "memory.max").read_text()) - int((place / "memory.current").read_text()))
    return min(found, default=None)


def lack(error: BaseException) -> str | None:
    """What was lacking, in words; None if the error says nothing of the kind."""
    if isinstance(error, MemoryError) or (
        # a library that is loaded late
        isinstance(error, ImportError) and "failed to map segment" in str(error)
    ):
        return _NO_MEMORY
    if isinstance(error, FileNotFoundError) and "No usable temporary directory" in str(error):
        return _NO_TEMPORARY
    if isinstance(error, OSError):
        return _BY_NUMBER.get(error.errno or 0)
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0)
        return (
            _OF_SQLITE.get(code)
            or _OF_SQLITE.get(code & 0xFF)
            or (_why_closed() if code & 0xFF == sqlite3.SQLITE_CANTOPEN else None)
        )
    return None


def _why_closed() -> str | None:
    """SQLite does not say why a file cannot be opened: what opening any file lacks."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return _BY_NUMBER.get(error.errno or 0)
    return None


def lacking(error: BaseException, file: str | Path | None = None, then: str = "") -> OutOfResources | None:
    """The failure that it is, told of a file (by default the one that the error names); None if nothing was
    lacking.

    then: what follows from it, as the end of a clause.
    """
    what = lack(error)
    if what is None:
        return None
    named = file or getattr(error, "filename2", None) or getattr(error, "filename", None) or "A file"
    told = "Out of memory" if what == _NO_MEMORY else f"{named} cannot be used ({what})"
    return OutOfResources(
        f"{told}{then}; {_CURES[what]}, and start again (with --resume where a run was under way)."
    )
