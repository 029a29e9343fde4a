"""The coins of a test: drawn from its name, so that no run of the suite fails by a chance that the run before
it had not.

`secrets`, and NumPy's generators without a seed, take the system's random bytes from `random._urandom`. While
a test runs that function gives a stream of the test's own instead: SHAKE-256 of the test's name, of the
thread (`MemoryNetwork` names a party's) and of a counter, uniform like the system's and alike in each run of
the suite. Laws, uniform bytes and forgeries that pass with a stated probability are tested as before; that an
honest build misses a bound is decided once, when test or protocol change, and not by each run again. `pytest
--fresh-coins` leaves the system's bytes, for campaigns.

Not covered, and so with a false-alarm rate of their own: processes that a test starts (also by fork), threads
that are no party's, keys that libraries make (`cryptography`).
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy.random  # noqa: F401 (draws a seed when it is imported, which is to be nobody's)

PARTY, MAIN = "party-", "MainThread"
"""Names of the threads that have a stream: in them the order of draws is the program's, not the scheduler's."""


class SystemCoins(random.SystemRandom):
    """The system's randomness, whatever `fixed` says: for what must differ between runs at the same time,
    such as ports."""

    def getrandbits(self, k: int) -> int:
        return int.from_bytes(os.urandom(-(-k // 8)), "big") >> -k % 8

    def randbytes(self, n: int) -> bytes:
        return os.urandom(n)


def stream(name: str) -> Callable[[int], bytes]:
    """Bytes on request: the same ones for the same name and thread, in the order in which that thread asks."""
    draws: Counter[str] = Counter()
    owner = os.getpid()

    def draw(count: int) -> bytes:
        thread = threading.current_thread().name
        if os.getpid() != owner or not thread.startswith((PARTY, MAIN)):
            return os.urandom(count)
        draws[thread] += 1
        return hashlib.shake_256(repr((name, thread, draws[thread])).encode()).digest(count)

    return draw


@contextmanager
def fixed(name: str) -> Iterator[None]:
    """While the block runs, what is drawn from the system in this process is the stream of this name."""
    before = random._urandom  # type: ignore[attr-defined]
    setattr(random, "_urandom", stream(name))  # noqa: B010 (mypy: a name of the module's own)
    try:
        yield
    finally:
        setattr(random, "_urandom", before)  # noqa: B010
