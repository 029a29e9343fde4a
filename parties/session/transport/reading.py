"""Who reads the links: the thread that waits for a message, or else the event loop.

A message that the loop reads for a waiting thread costs two changes of threads, each as dear as the message
itself; so a thread that waits reads all links itself, heartbeats and control frames included, until what it
waits for is there. While no thread waits, the loop reads: bytes that come during a computation are decrypted
beside it, and silence is noticed.

Only the holder of the reader's lock reads. The loop watches a selector that holds the selector of the
sockets. A thread that becomes the reader takes the inner selector out, so that the loop sleeps on. The loop
puts it back when no thread has read for PAUSE_S: in a protocol of many short rounds the loop takes no part. A
second thread that waits meanwhile gets its messages from the reader.

What reading finds out about the session (control frames, a violation, the end of a link) is reported in the
loop's thread.
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

PAUSE_S = 0.01
"""How long after a thread's last reading the loop reads again: bytes that come then wait that long, in the
kernel. Each change costs a wake-up of the loop, so it is longer than most computations between two messages."""
_CLOSE_S = 1.0  # for a reading thread to stop: it has been woken, unless the run ended well without it
_MAX_PAUSE_S = 0.04
"""Between two looks at a thread that still waits: then the same, after a wait of this length or more."""


class Readable(Protocol):
    """A link, as its reader sees it."""

    def read(self) -> bool:
        """Read what the socket holds; True if more may be there that the socket does not show."""


class Reading:
    """The links of one party and the lock of their reader. Made, fed and closed in the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._thread = loop, threading.get_ident()
        self._reader = threading.Lock()
        self._ready, self._watched = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._wake_end, self._waking_end = os.pipe()
        self._ready.register(self._wake_end, selectors.EVENT_READ)
        self._watched.register(self._ready, selectors.EVENT_READ)
        loop.add_reader(self._watched, self._loop_reads)  # a selector has a descriptor, too
        self._more: list[Readable] = []
        self._loop_watches = True
        self._by_loop = False
        self._read_at = 0.0
        self._pause = PAUSE_S
        self._pending: deque[Callable[[], None]] = deque()

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
        """From now on the loop alone reads: for threads that always wait, and for a network that is emulated
        by its timers."""
        self._by_loop = True

    def call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Run `function` in the event loop's thread; calls keep their order."""
        if threading.get_ident() == self._thread and not self._pending:
            function(*arguments)
        else:
            self._pending.append(partial(function, *arguments))
            self._loop.call_soon_threadsafe(self._call_pending)

    def _call_pending(self) -> None:
        self._pending.popleft()()

    def wait(self, inbox: Inbox) -> Message | None:
        """The inbox's next message, read by this thread unless another one reads. Call `wake` to wake it
        after a None."""
        if self._by_loop or not self._reader.acquire(blocking=False):
            return inbox.ready.get()
        try:
            if self._loop_watches:
                self._loop_watches = False
                self._watched.unregister(self._ready)
                self._loop.call_soon_threadsafe(self._watch)
            while inbox.ready.empty():
                self._read(None)
            self._read_at = time.monotonic()
        finally:
            self._reader.release()
        return inbox.ready.get()

    def wake(self) -> None:
        """Make the reader look into its inbox for the last time, since the run is over. Any thread may call
        this."""
        os.write(self._waking_end, b"\0")

    def close(self) -> None:
        """Close the selectors, once no link is left. If a thread still reads from them, they stay open until
        the process ends."""
        self._loop.remove_reader(self._watched)
        if not self._reader.acquire(timeout=_CLOSE_S):
            return
        try:
            self._watched.close()
            self._ready.close()
            os.close(self._wake_end)
            os.close(self._waking_end)
        finally:
            self._reader.release()

    def _read(self, timeout: float | None) -> None:
        found = [key.data for key, _ in self._ready.select(0 if self._more else timeout)]
        links, self._more = {*found, *self._more}, []
        for link in links:
            if link is None:  # `wake`, which happens once
                self._ready.unregister(self._wake_end)
            elif link.read():
                self._more.append(link)

    def _loop_reads(self) -> None:
        if self._reader.acquire(blocking=False):
            try:
                self._read(0)
                more = bool(self._more)
            finally:
                self._reader.release()
            if more:  # what is decrypted already does not show in the selector
                self._loop.call_soon(self._loop_reads)

    def _watch(self) -> None:
        """Let the loop watch the sockets again when no thread has read for a while."""
        self._pause = min(2 * self._pause, _MAX_PAUSE_S)
        restored = False
        if self._reader.acquire(blocking=False):
            try:
                self._pause = max(self._read_at + PAUSE_S - time.monotonic(), PAUSE_S / 2)
                if time.monotonic() >= self._read_at + PAUSE_S:
                    self._watched.register(self._ready, selectors.EVENT_READ)
                    self._loop_watches = restored = True
            finally:
                self._reader.release()
        if not restored:  # a thread that reads asks for this again, perhaps by now
            self._loop.call_later(self._pause, self._watch)
        elif self._more:
            self._loop.call_soon(self._loop_reads)
