"""Public files from other people that a study names: read with a limit, and only if they are files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_BYTES = 64 << 20


def read_public(file: Path) -> bytes:
    """The content of a regular file of at most `MAX_BYTES`. Nothing else is waited for. Raises OSError;
    ValueError, why not."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{file.name} must be a file, and is a folder, a pipe or a device")
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{file.name} is larger than {MAX_BYTES >> 20} MiB")
    return content
