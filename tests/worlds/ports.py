"""Ports of this machine for tests that open them: of two processes that run tests at once, none gets a port
of the other."""

from __future__ import annotations

import fcntl
import getpass
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

from runner.launch.ports import is_free

_FIRST, _SLICE, _SLICES = 10_000, 500, 20
"""10,000 to 19,999: below what the kernel gives to outgoing connections, and below what `runner.launch.ports`
chooses from."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different, and that no other process of tests will ask for."""
    ports = _own_slice()
    return [next(port for port in ports if is_free(port)) for _ in range(count)]


@cache
def _own_slice() -> Iterator[int]:
    """The ports of the first slice whose lock nobody holds, in turns. The lock is held until this process
    ends."""
    directory = Path(tempfile.gettempdir()) / f"cosynth-test-ports-{getpass.getuser()}"
    directory.mkdir(exist_ok=True)
    for number in range(_SLICES):
        lock = os.open(directory / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        first = _FIRST + number * _SLICE
        return cycle(range(first, first + _SLICE))
    raise RuntimeError(f"{_SLICES} processes run tests at once: end some of them.")
