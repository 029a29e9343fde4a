"""Messages of one peer on one stream, from the network thread to the thread that receives them.

The buffer of a message is reserved when its first frame comes, lazily (anonymous memory is touched only where
bytes arrive), so that a peer that announces a gigabyte and sends nothing costs nothing; what may arrive is
bounded by the window (`link`). Bytes are never copied again: the receiver gets a view of that buffer.
"""

from __future__ import annotations

import mmap
from queue import SimpleQueue
from typing import NamedTuple

from parties.session.transport.frames import FRAME_COST, BadFrame, Header


class Message(NamedTuple):
    """One whole message: payload, its number in the stream, the sender's clock, and what it cost of the
    window."""

    payload: memoryview
    sequence: int
    depth: int
    cost: int


class Inbox:
    """One stream's arrivals. The network thread fills it, one other thread takes from `ready` (None: the
    session has failed, or the peer has said goodbye)."""

    __slots__ = ("_buffer", "_cost", "_filled", "_first", "_next", "opened", "ready")

    def __init__(self) -> None:
        self.ready: SimpleQueue[Message | None] = SimpleQueue()
        self.opened = False
        self._next = 0
        self._first: Header | None = None
        self._buffer = memoryview(b"")
        self._filled = 0
        self._cost = 0

    def place(self, header: Header) -> memoryview:
        """Where the payload of this frame goes. Raises `BadFrame` if it does not continue the stream,
        `MemoryError`."""
        first = self._first
        if first is None:
            if header.sequence != self._next:
                raise BadFrame(f"message {header.sequence} where message {self._next} was due")
            self._first = header
            self._filled = self._cost = 0
            # small: zeroed at once (bounded by the window); large: pages appear as they are written
            self._buffer = memoryview(
                bytearray(header.total) if header.total <= 1 << 16 else _pages(header.total)
            )
        elif (header.sequence, header.total, header.depth) != (first.sequence, first.total, first.depth):
            raise BadFrame("a frame of another message inside a message")
        if self._filled + header.length > header.total:
            raise BadFrame("more bytes than the message has")
        return self._buffer[self._filled : self._filled + header.length]

    def filled(self, header: Header) -> Message | None:
        """The payload of this frame is in place; the message, if that completes it (the caller puts it into
        `ready`)."""
        self._filled += header.length
        self._cost += header.length + FRAME_COST
        if self._filled < header.total:
            return None
        message = Message(self._buffer, header.sequence, header.depth, self._cost)
        self._first, self._buffer = None, memoryview(b"")
        self._next += 1
        return message


def _pages(size: int) -> mmap.mmap:
    """Anonymous memory. Raises `MemoryError`, also where a limit of the process (`ulimit -v`) is the reason."""
    try:
        return mmap.mmap(-1, size)
    except OSError:
        raise MemoryError from None
