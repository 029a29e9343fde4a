"""Private temporary folders that do not outlive their process, however it ends.

What lies in one is nobody else's: throw-away keys of a run on one machine, tables handed over by the Python API, records that a
query has spilled. `with scratch()` removes it; a process that is killed cannot, so whoever makes a folder removes those of the
dead first. A folder's lock file is held (`flock`) by the process that made it: the kernel gives it up however that process ends
and keeps it while it is merely stopped. The file appears under its name only when it is locked, so a folder without one is
being made, or is not ours: it is left alone, as is anything that belongs to another user, that others may enter, or that is a
symbolic link. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "cosynth-"
LOCK = ".lock"


class Scratch:
    """An open folder, 0700. Use as a context manager, or `close` it."""

    def __init__(self) -> None:
        _remove_dead(tempfile.gettempdir())
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        fresh = self.path / f"{LOCK}.new"
        self._descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(self.path / LOCK)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and what is in it; does nothing the second time."""
        if self._descriptor >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._descriptor)
            self._descriptor = -1


def _remove_dead(directory: str) -> None:
    """Remove this user's folders whose process is known to be dead: there is a lock file, and nobody holds it."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_if_dead(entry)


def _remove_if_dead(entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return
    descriptor = os.open(os.path.join(entry.path, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(descriptor)
