"""Who reads the links: the thread that waits for a message, or else the event loop.

A message that the loop reads for a waiting thread costs two changes of threads, each as dear as the message itself; so a thread
that waits reads all links itself, heartbeats and control frames included, until what it waits for is there. While no thread
waits, the loop reads: bytes that come during a computation are decrypted beside it, and silence is noticed.

Only who holds the role reads. The loop does not watch the sockets but a selector that holds the selector of the sockets: the
gate. It is closed when a thread takes the role, so that the loop sleeps on, and opened again by the loop itself when no
thread has read for PAUSE_S: in a protocol of many short rounds the loop takes no part. A second thread that waits meanwhile
gets its messages from whoever reads.

What reading finds out about the session (control frames, a violation, the end of a link) is told in the loop's thread.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from parties.session.transport.inbox import Inbox, Message

PAUSE_S = 0.003
"""How long after a thread's last reading the loop reads again: bytes that come then wait that long, in the kernel."""
_LEFT_BEHIND_S = 1.0  # a thread that reads has been woken by the bell, unless the run ended well without it
_MAX_PAUSE_S = 0.024  # between two looks at a thread that still waits: then the same, after a wait of this length or more


class Readable(Protocol):
    """A link, as its reader sees it."""

    def read(self) -> bool:
        """Read what the socket holds; True if more may be there that the socket does not show."""


class Reading:
    """The links of one party and the role of their reader. Made, fed and closed in the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._thread = loop, threading.get_ident()
        self._role = threading.Lock()
        self._ready, self._gate = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._bell, self._rope = os.pipe()
        self._ready.register(self._bell, selectors.EVENT_READ)
        self._gate.register(self._ready, selectors.EVENT_READ)
        loop.add_reader(self._gate, self._loop_reads)  # a selector has a descriptor, too
        self._more: list[Readable] = []
        self._open = True
        self._by_loop = False
        self._read_at = 0.0
        self._pause = PAUSE_S
        self._untold: deque[Callable[[], None]] = deque()

    def add(self, descriptor: int, link: Readable) -> None:
        """Read this link from now on, and what may wait inside its TLS object already."""
        self._ready.register(descriptor, selectors.EVENT_READ, link)
        self._loop.call_soon(self.again, link)

    def again(self, link: Readable) -> None:
        """Read this link now, whatever its socket shows; in the loop's thread."""
        self._more.append(link)
        self._loop_reads()

    def remove(self, descriptor: int) -> None:
        """Read it no more."""
        self._ready.unregister(descriptor)

    def leave_to_loop(self) -> None:
        """From now on the loop alone reads: for threads that always wait, and for a network that is emulated by its timers."""
        self._by_loop = True

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function of the session's, in the loop's thread, in the order of these calls."""
        if threading.get_ident() == self._thread and not self._untold:
            function(*arguments)
        else:
            self._untold.append(partial(function, *arguments))
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._untold.popleft()()

    def wait(self, inbox: Inbox) -> Message | None:
        """The inbox's next message, read by this thread unless another one reads. Call `ring` to wake it after a None."""
        if self._by_loop or not self._role.acquire(blocking=False):
            return inbox.ready.get()
        try:
            if self._open:
                self._open = False
                self._gate.unregister(self._ready)
                self._loop.call_soon_threadsafe(self._watch)
            while inbox.ready.empty():
                self._read(None)
            self._read_at = time.monotonic()
        finally:
            self._role.release()
        return inbox.ready.get()

    def ring(self) -> None:
        """Any thread: whoever waits is to look into its inbox again, for the last time (the run is over)."""
        os.write(self._rope, b"\0")

    def close(self) -> None:
        """No link is left. What a thread that was left behind still reads from stays open, until the process ends."""
        self._loop.remove_reader(self._gate)
        if not self._role.acquire(timeout=_LEFT_BEHIND_S):
            return
        try:
            self._gate.close()
            self._ready.close()
            os.close(self._bell)
            os.close(self._rope)
        finally:
            self._role.release()

    def _read(self, timeout: float | None) -> None:
        found = [key.data for key, _ in self._ready.select(0 if self._more else timeout)]
        links, self._more = {*found, *self._more}, []
        for link in links:
            if link is None:  # the bell; it rings once
                self._ready.unregister(self._bell)
            elif link.read():
                self._more.append(link)

    def _loop_reads(self) -> None:
        if self._role.acquire(blocking=False):
            try:
                self._read(0)
                more = bool(self._more)
            finally:
                self._role.release()
            if more:  # what is decrypted already does not show in the selector
                self._loop.call_soon(self._loop_reads)

    def _watch(self) -> None:
        """The gate is closed: open it when no thread has read for a while."""
        self._pause = min(2 * self._pause, _MAX_PAUSE_S)
        opened = False
        if self._role.acquire(blocking=False):
            try:
                self._pause = max(self._read_at + PAUSE_S - time.monotonic(), PAUSE_S / 2)
                if time.monotonic() >= self._read_at + PAUSE_S:
                    self._gate.register(self._ready, selectors.EVENT_READ)
                    self._open = opened = True
            finally:
                self._role.release()
        if not opened:  # who closes an open gate has it watched anew, perhaps by now
            self._loop.call_later(self._pause, self._watch)
        elif self._more:
            self._loop.call_soon(self._loop_reads)
