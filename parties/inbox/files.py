"""Files that only their owner may read: written whole, durably, or not at all.

A file is made under a name of its own, `.NAME.RANDOM.part`, and locked as long as its process lives. What a
crash leaves of it may be half a key: whoever uses the folder next removes what nobody holds
(`discard_unfinished`).
"""

from __future__ import annotations

import fcntl
import glob
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from parties.new_file import put_in_place, sync

_PART = ".part"


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Put a file of mode 0600 in place in one step; durable on return.

    Raises OSError; FileExistsError if there is one and it may not be replaced, also when it appears
    meanwhile.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part, descriptor = _begin(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if replace:
                os.replace(part, path)
            else:
                put_in_place(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def delete(paths: Iterable[Path]) -> list[Path]:
    """Remove files, durably: a crash does not bring them back. The paths of those that are still there; no
    error otherwise."""
    failed, folders = list[Path](), set[Path]()
    for path in paths:
        try:
            path.unlink(missing_ok=True)
            folders.add(path.parent)
        except OSError:
            failed.append(path)
    for folder in folders:
        try:
            sync(folder)
        except FileNotFoundError:  # nothing was there
            continue
        except OSError:
            failed.append(folder)
    return failed


def discard_unfinished(folder: Path, name: str = "*") -> list[Path]:
    """Remove what crashes have left in a folder of files that were being written; the paths of what cannot be
    removed.

    name: of the file that was to be; all of them by default.
    """
    pattern = f".{name if name == '*' else glob.escape(name)}.*{_PART}"
    return [part for part in folder.glob(pattern) if not _discarded(part)]


def _begin(path: Path) -> tuple[Path, int]:
    """A new file beside `path`, locked."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}{_PART}")
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # somebody took it for a leftover before it was locked


def _discarded(part: Path) -> bool:
    """Remove a file that no process holds; whether it is gone, or somebody's."""
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return not delete([part])
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not delete([part])  # while it is locked: see `_begin`
    except OSError:
        return True
    finally:
        os.close(descriptor)
