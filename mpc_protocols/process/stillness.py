"""Whether nothing happens any more in this process: told by what its threads compute, not by a clock.

Problem: a party that waits for a message of another thread must not wait for ever, and how long a message
takes says nothing: on a loaded machine the sender may hardly get a turn. So whoever waits looks again and
again at the CPU time of the process, without what all that wait have used for looking (a look after half a
second of sleep was measured at .7 ms, so that three who wait seemed to work). Threads that all wait use none;
one that has work uses some between so many looks, however little it gets. What computes without end and sends
nothing is given up by the CPU time that it has used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOKS = 20
LOOK_S, LOOK_SHARE = 0.001, 0.1
"""CPU seconds between two looks that are no work, and as a share of the time between them: what a look uses
is known only at the next one."""
MAX_WORK = 10
"""CPU time until a message comes, in patiences."""

_lock = threading.Lock()
_looking_s = 0.0
"""What waits have used in this process."""


def _worked() -> float:
    """CPU seconds of this process but for waits."""
    with _lock:
        return time.process_time() - _looking_s


class Stillness:
    """What one wait has seen. patience_s: from the first to the last of the looks that must see no work.
    used: the CPU time but for waits. To be made and asked by the thread that waits."""

    def __init__(self, patience_s: float, used: Callable[[], float] = _worked) -> None:
        self.look_after_s = patience_s / LOOKS
        self._used = used
        self._idle_s = LOOKS * min(LOOK_S, LOOK_SHARE * self.look_after_s)
        self._most_s = MAX_WORK * patience_s
        self._own_s = time.thread_time()
        self._begin_s = self._seen_s = used()
        self._looks = 0

    def verdict(self) -> str | None:
        """To be asked every `look_after_s`: why nothing is to be waited for, the rest of a sentence; None if
        something is."""
        self._count_own()
        now_s = self._used()
        self._looks += 1
        if now_s - self._begin_s > self._most_s:
            return f"while {now_s - self._begin_s:.3g} s were computed"
        if now_s - self._seen_s > self._idle_s:
            self._seen_s, self._looks = now_s, 0
        return "and nobody computes any more" if self._looks >= LOOKS else None

    def _count_own(self) -> None:
        """What this thread has used since the last look was for this look."""
        global _looking_s
        own_s = time.thread_time()
        with _lock:
            _looking_s += own_s - self._own_s
        self._own_s = own_s
