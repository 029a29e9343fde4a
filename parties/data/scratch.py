"""Private temporary folders that do not outlive their process, however it ends.

What lies in one is nobody else's: throw-away keys of a run on one machine, tables handed over by the Python
API, records that a query has spilled. `with scratch()` removes it; a process that is killed cannot, so
whoever makes a folder removes those of the dead first. A folder's lock file is held (`flock`) by the process
that made it: the kernel gives it up however that process ends and keeps it while it is merely stopped. The
file appears under its name only when it is locked, so a folder without one is being made, or is not ours: it
is left alone, as is anything that belongs to another user, that others may enter, or that is a symbolic link.
A watched folder does not wait for that: a shell of a few hundred KiB sleeps until its maker's end of a pipe
closes, and removes it then (throw-away keys and handed-over tables lie in such a one). Standard library only.

Whoever takes the lock's descriptor out of an open folder owns its removal, so it is closed once, and nobody
who closes it returns before it is gone: a process that is about to end removes what a thread of it is still
reading.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

PREFIX = "cosynth-"
LOCK = ".lock"


class Scratch:
    """An open folder, 0700. Use as a context manager, or `close` it, in any thread.

    watched: it is removed at once, too, when this process is killed; costs a sleeping shell.
    """

    def __init__(self, watched: bool = False) -> None:
        _remove_dead(tempfile.gettempdir())
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        fresh = self.path / f"{LOCK}.new"
        self._closing = threading.RLock()
        self._descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(self.path / LOCK)
        self._watchman = _watchman(self.path) if watched else None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and what is in it; the second time, wait until the first has done so."""
        with self._closing:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor < 0:
                return
            if self._watchman is not None:
                self._watchman.kill()
                self._watchman.communicate()
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(descriptor)


class Spill(Scratch):
    """The folder of an open table, for copies of it and what queries put on disk: `remove_spills` removes it, too."""

    def __init__(self) -> None:
        super().__init__()
        _spills.add(self)

    def close(self) -> None:
        super().close()
        _spills.discard(self)


_spills: set[Spill] = set()


def remove_spills() -> None:
    """Remove the folders of tables that are still open: for a process that is about to end without closing them."""
    for spill in tuple(_spills):
        spill.close()


def _watchman(folder: Path) -> subprocess.Popen[bytes] | None:
    """A shell that removes the folder when the pipe from this process closes; None where there is no shell.

    It has a session of its own: what ends this process by a key (Ctrl-C) must leave the one who cleans up.
    """
    with suppress(OSError):
        return subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; rm -rf -- "$1"', "cosynth", os.fspath(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    return None


def _remove_dead(directory: str) -> None:
    """Remove this user's folders whose process is known to be dead: there is a lock file, and nobody holds
    it."""
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
