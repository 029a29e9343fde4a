"""Threads of a party: each begins, or the party ends.

Where memory is out, a new thread may die before it says that it is there. The library would wait for that without end, and so
would all other parties, as this one's heartbeats go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

START_S = 20.0
"""Until a thread that does not begin is given up."""


class _Begun(threading.Event):
    """Whether a thread has begun."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(START_S if timeout is None else timeout):
            raise MemoryError
        return True


def start_thread(body: Callable[..., object], *given: object, name: str | None = None) -> threading.Thread:
    """Start a daemon thread that runs `body(*given)`. Raises `MemoryError` if it does not begin."""
    thread: Any = threading.Thread(target=body, args=given, name=name, daemon=True)
    thread._started = _Begun()
    thread.start()
    return thread  # type: ignore[no-any-return]
