"""Threads of a party: each begins, or the party ends.

Where memory is out, a new thread may die before it says that it is there. The library would wait for that
without end, and so would all other parties, as this one's heartbeats go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

START_S = 20.0
"""Until a thread that does not begin is given up."""
_WAITS = 20
"""Into which that time is cut: of a pause of the whole process, in which no thread could begin, one of them
ends and no more."""


class _Begun(threading.Event):
    """Whether a thread has begun."""

    def wait(self, timeout: float | None = None) -> bool:
        for _ in range(_WAITS):
            if super().wait((START_S if timeout is None else timeout) / _WAITS):
                return True
        raise MemoryError


def start_thread(body: Callable[..., object], *given: object, name: str | None = None) -> threading.Thread:
    """Start a daemon thread that runs `body(*given)`. Raises `MemoryError` if it does not begin."""
    thread: Any = threading.Thread(target=body, args=given, name=name, daemon=True)
    thread._started = _Begun()
    thread.start()
    return thread  # type: ignore[no-any-return]
