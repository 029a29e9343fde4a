"""Files that only their owner may read: written whole, durably, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Put a file of mode 0600 in place in one step; durable on return.

    Raises OSError; FileExistsError if there is one and it may not be replaced, also when it appears meanwhile.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(part, path)
        else:
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    _sync(path.parent)


def delete(path: Path) -> None:
    """Remove a file, durably: a crash does not bring it back. Nothing happens if there is none. Raises OSError."""
    path.unlink(missing_ok=True)
    if path.parent.exists():
        _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
