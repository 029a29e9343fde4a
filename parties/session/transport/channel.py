"""The bytes of one connection: plain on loopback, or inside TLS 1.3 (`docs/design/session.md` 5). Knows
nothing of frames.

TLS runs on memory buffers (`ssl.SSLObject`) over a non-blocking socket, so that the thread that has a message
seals and sends it itself (no hand-over to the event loop on the way out) and so that a large message is
decrypted straight into its final buffer. Neither side's object may be used by two threads at once: the link
holds its lock around every call.
"""

from __future__ import annotations

import socket
import ssl
from abc import ABC, abstractmethod
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parties.session.transport.way_in import HeldBack

STAGE = 1 << 18
"""Bytes taken from the socket at once."""
SMALL = 1 << 16
"""A payload up to this size may be modified once it is sealed; a larger one must stay as it is until it is sent."""
_RECORD = 1 << 14
"""Most bytes of a record of TLS."""


class Closed(Exception):
    """The peer ended the connection."""


class Channel(ABC):
    """A two-way stream of bytes; reading raises BlockingIOError when there is nothing, `Closed` at the end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._stage = bytearray(STAGE)
        self._out: deque[memoryview] = deque()
        self._dead = self._drained = False
        self.held_back: HeldBack | None = None

    @abstractmethod
    def put(self, header: bytes, payload: memoryview | None = None) -> None:
        """Seal a frame behind those not yet sent; call `flush` to send. A payload above SMALL may be kept, not copied."""

    @abstractmethod
    def read_into(self, view: memoryview) -> int:
        """Some bytes of the stream, at least one, at most len(view)."""

    def flush(self) -> bool:
        """Send what the socket takes; True when nothing is left. A broken connection is left to the reading
        side to tell: the peer's last words may still be waiting there."""
        while self._out and not self._dead:
            try:
                several = list(islice(self._out, 16)) if len(self._out) > 1 else None
                sent = self.sock.sendmsg(several) if several else self.sock.send(self._out[0])
            except BlockingIOError:
                return False
            except OSError:
                self._dead = True
                break
            while sent:
                head = self._out[0]
                if sent < len(head):
                    self._out[0] = head[sent:]
                    break
                sent -= len(head)
                self._out.popleft()
        if self._dead:
            self._out.clear()
        return True

    @property
    def clear(self) -> bool:
        """Nothing waits to be sent."""
        return not self._out

    def _receive(self, view: memoryview | bytearray) -> int:
        """Bytes from the socket. After fewer than were asked for it is known to be empty, and is not asked
        again at once."""
        try:
            if self.held_back is not None:
                count = self.held_back.receive_into(view)
            elif self._drained:
                self._drained = False
                raise BlockingIOError
            else:
                count = self.sock.recv_into(view)
                self._drained = 0 < count < len(view)
        except BlockingIOError:
            raise
        except OSError as error:
            raise Closed(type(error).__name__) from None
        if count == 0:
            raise Closed("end of stream")
        return count


class PlainChannel(Channel):
    """No protection: for `insecure-loopback` only."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._ready = memoryview(b"")

    def put(self, header: bytes, payload: memoryview | None = None) -> None:
        if payload is None or len(payload) <= SMALL:
            self._out.append(memoryview(header + bytes(payload or b"")))
        else:
            self._out.append(memoryview(header))
            self._out.append(payload)

    def read_into(self, view: memoryview) -> int:
        if not self._ready:
            if len(view) >= STAGE:
                return self._receive(view)
            self._ready = memoryview(self._stage)[: self._receive(self._stage)]
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


class TlsChannel(Channel):
    """TLS 1.3 with both certificates verified before the object gets here (`handshake`)."""

    def __init__(
        self, sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        super().__init__(sock)
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._record = memoryview(bytearray(_RECORD))
        self._plain = self._record[:0]

    def put(self, header: bytes, payload: memoryview | None = None) -> None:
        if payload is None or len(payload) <= 16384:
            self._write(memoryview(header + bytes(payload or b"")))
        else:
            self._write(memoryview(header))
            self._write(payload)
        self._out.append(memoryview(self._outgoing.read()))

    def _write(self, view: memoryview) -> None:
        while view:
            view = view[self._tls.write(view) :]

    def read_into(self, view: memoryview) -> int:
        """A large part is decrypted into its place; of small ones a record at a time, since a call costs as much as
        the bytes of a header and a small message together."""
        plain = self._plain
        if not plain:
            large = len(view) >= _RECORD
            count = self._decrypted(view if large else self._record)
            if large:
                return count
            plain = self._record[:count]
        count = min(len(view), len(plain))
        view[:count] = plain[:count]
        self._plain = plain[count:]
        return count

    def _decrypted(self, view: memoryview) -> int:
        """Bytes of the next record, as `read_into` gives them. Asks the object only where it may have some: that it
        has none is an exception, which is dearer than a record."""
        while True:
            if self._incoming.pending or self._tls.pending():
                try:
                    count = int(self._tls.read(len(view), view))
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    raise Closed("end of stream") from None
                else:
                    if count == 0:
                        raise Closed("end of stream")
                    return count
            self._incoming.write(memoryview(self._stage)[: self._receive(self._stage)])
