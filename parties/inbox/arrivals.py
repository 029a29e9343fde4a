"""A folder that others fill with bundles: what has arrived whole is taken in, whatever stands beside it.

Who can write there can put anything there: pipes, links, names that are no text, files that are still
growing. None of it ends the watch or is waited for. A file is looked at once its size and time are those of
the sweep before; what is taken in leaves the folder, what is refused stays under another name. Fault of this
party's own inbox leaves the files as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError
from mpc_protocols.process.foreign_text import printable
from parties.inbox.store import SUFFIX, InboxUnusable

if TYPE_CHECKING:
    from parties.inbox.store import Inbox

REFUSED = ".refused"
Stamp = tuple[int, int, int]
"""Number, size and time of change (ns) of a file."""


class Arrivals:
    """One watched folder of one inbox. tell: what becomes of each file, a line."""

    def __init__(self, inbox: Inbox, folder: Path, tell: Callable[[str], None]) -> None:
        self._inbox, self._folder, self._tell = inbox, folder, tell
        self._seen: dict[Path, Stamp] = {}
        self._done: dict[Path, Stamp] = {}  # looked at, and could not be moved

    def sweep(self, now: datetime) -> None:
        """Look at the folder once. Raises `CosynthError` only if this party cannot take in anything
        (`Inbox.ready`)."""
        seen = dict[Path, Stamp]()
        for file in waiting(self._folder):
            with suppress(OSError):
                seen[file] = _stamp(file)
        whole = [
            file for file, stamp in seen.items() if self._seen.get(file) == stamp != self._done.get(file)
        ]
        self._seen = seen
        self._done = {file: stamp for file, stamp in self._done.items() if file in seen}
        if not whole:
            return
        self._inbox.ready()
        for file in whole:
            try:
                outcome, contributor = self._inbox.add(file, now)
                self._tell(f"{printable(str(file), line=True)}: {WORDS[outcome]}, of {contributor}")
                moved = _removed(file)
            except InboxUnusable as error:
                self._tell(error.sentence)
                continue
            except CosynthError as error:
                self._tell(error.sentence)
                moved = _set_aside(file)
            if not moved:
                self._tell(
                    f"{printable(str(file), line=True)} cannot be moved away and is not looked at again"
                )
                self._done[file] = seen[file]


WORDS = {"accepted": "accepted", "known": "here already"}
"""Outcomes of `Inbox.add`."""


def waiting(folder: Path) -> Sequence[Path]:
    """The bundles in a watched folder, by name; none if it cannot be listed."""
    try:
        return sorted(
            entry for entry in folder.iterdir() if entry.suffix == SUFFIX and not entry.name.startswith(".")
        )
    except OSError:
        return []


def _stamp(file: Path) -> Stamp:
    status = os.lstat(file)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _removed(file: Path) -> bool:
    try:
        file.unlink()
    except OSError:
        return False
    return True


def _set_aside(file: Path) -> bool:
    """Rename a refused file so that it is not looked at again; by a short name where its own leaves no room."""
    short = hashlib.sha256(os.fsencode(file.name)).hexdigest()[:16]
    for name in (file.name, short):
        with suppress(OSError):
            os.replace(file, file.with_name(name + REFUSED))
            return True
    return False
