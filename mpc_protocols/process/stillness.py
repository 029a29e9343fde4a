"""Whether nothing happens any more in this process: told by what its threads compute, not by a clock.

Problem: a party that waits for a message of another thread must not wait for ever, and how long a message
takes says nothing: on a loaded machine the sender may hardly get a turn. So whoever waits looks again and
again at the CPU time of the process. Threads that all wait use none; one that has work uses some between so
many looks, however little it gets. What computes without end and sends nothing is given up by the CPU time
that it has used.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LOOKS = 20
LOOK_S, LOOK_SHARE = 0.001, 0.1
"""CPU seconds between two looks that are no work, and as a share of the time between them: looking costs
something, and several parties may wait."""
MAX_WORK = 10
"""CPU time until a message comes, in patiences."""


class Stillness:
    """What one wait has seen. patience_s: from the first to the last of the looks that must see no work.
    used: the CPU time."""

    def __init__(self, patience_s: float, used: Callable[[], float] = time.process_time) -> None:
        self.look_after_s = patience_s / LOOKS
        self._used = used
        self._idle_s = min(LOOK_S, LOOK_SHARE * self.look_after_s)
        self._most_s = MAX_WORK * patience_s
        self._begin_s = self._seen_s = used()
        self._looks = 0

    def verdict(self) -> str | None:
        """To be asked every `look_after_s`: why nothing is to be waited for, the rest of a sentence; None if
        something is."""
        now_s = self._used()
        self._looks += 1
        if now_s - self._begin_s > self._most_s:
            return f"while {now_s - self._begin_s:.3g} s were computed"
        if now_s - self._seen_s > self._idle_s * self._looks:
            self._seen_s, self._looks = now_s, 0
        return "and nobody computes any more" if self._looks >= LOOKS else None
