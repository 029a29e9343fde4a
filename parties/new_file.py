"""A new file gets its name once it is whole, and takes it from no other: what several processes make at once is
one's, and a crash leaves nothing under the name.

A hard link does both in one step. Where the file system has none (FAT, some network and container mounts) a
lock beside stands in for it: it holds among those who come by this way.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path


def put_in_place(part: Path, path: Path) -> None:
    """Give the file `part`, of the same folder, the name `path`; durable on return, if its content was.

    Raises FileExistsError, and leaves both as they are, if the name is taken, also by a link that leads nowhere;
    another OSError if it cannot be done, or cannot be made durable.
    """
    try:
        os.link(part, path)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # each file system says in its own way that it has no hard links
        _rename(part, path)
    else:
        part.unlink(missing_ok=True)
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(part: Path, path: Path) -> None:
    lock = path.with_name(f".{path.name}.lock.part")
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not (taken := os.path.lexists(path)):
            os.rename(part, path)
        lock.unlink(missing_ok=True)  # who holds a later one finds the name taken
    finally:
        os.close(descriptor)
    if taken:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
