"""The events in a run's directory, as they are written: read on from where the last look ended.

A directory may hold an earlier run's results; then the run under way tells of itself in a file of another
name (`runner.results.outdir`). A file that was replaced or cut off is read anew from its beginning, with the
whole story. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.report.watch.result import result
from runner.report.watch.story import Story
from runner.results.outdir import EVENTS, MARK, PARTY_FOLDERS, UNFINISHED

MAX_BYTES = 64 << 20
"""Of one file: more is not read."""


@dataclass
class _Tail:
    inode: int
    offset: int = 0
    rest: bytes = b""


@dataclass
class Follower:
    """Follows one directory. `look` returns the state."""

    directory: Path
    story: Story = field(default_factory=Story)
    _tails: dict[Path, _Tail] = field(default_factory=dict)
    _earlier: dict[Path, tuple[int, int, int] | None] = field(default_factory=dict)

    def pass_over(self) -> None:
        """Take what is there now for an earlier run's: it tells nothing until it changes."""
        self._earlier = {path: _stamp(path) for path in self._paths()}

    def look(self) -> dict[str, Any]:
        """Read what is new; the state, and whether a run is under way, has finished or has ended without
        results."""
        paths = self._paths()
        if any(self._replaced(path, tail) for path, tail in self._tails.items()) or set(self._tails) - set(
            paths
        ):
            self.story, self._tails = Story(), {}
        for path in paths:
            self._read(path)
        running = under_way(self.directory)
        state = "finished" if self.story.finished else "running" if running or not self._tails else "ended"
        if not self._tails and not running:
            state = "nothing yet"
        told = result(self.directory) if state == "finished" else {}
        return {
            **self.story.to_json(),
            **told,
            "state": state,
            "report": (self.directory / "report.html").is_file(),
        }

    def _paths(self) -> list[Path]:
        own = [*sorted(self.directory.glob(f"{PARTY_FOLDERS}/*")), self.directory]
        found = [path for folder in own if (path := newest(folder)) is not None]
        found = [path for path in found if self._earlier.get(path, ()) != _stamp(path)]
        return found[:-1] if len(found) > 1 and found[-1].parent == self.directory else found

    def _replaced(self, path: Path, tail: _Tail) -> bool:
        try:
            status = path.stat()
        except OSError:
            return True
        return status.st_ino != tail.inode or status.st_size < tail.offset

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                tail = self._tails.setdefault(path, _Tail(os.fstat(file.fileno()).st_ino))
                file.seek(tail.offset)
                new = file.read(max(0, MAX_BYTES - tail.offset))
        except OSError:
            return
        tail.offset += len(new)
        *lines, tail.rest = (tail.rest + new).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                self.story.take(event)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file: its inode, its size and when it was written; None if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def newest(folder: Path) -> Path | None:
    """The file in which the run under way, or the last one, tells of itself."""
    found = [path for name in (EVENTS, UNFINISHED[EVENTS]) if (path := folder / name).is_file()]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def under_way(directory: Path) -> bool:
    """Whether a run holds the directory's lock."""
    try:
        lock = os.open(directory / MARK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
