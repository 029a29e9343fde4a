"""One authenticated connection: frames both ways, a window, and nothing that grows without bound
(`docs/design/session.md` 5, `docs/design/engine.md` 3).

Threads: one at a time reads (`reading`); any thread sends. A sender seals its frames itself and hands only
what a full socket left over to the event loop, so a small message costs no thread switch, neither on the way
out nor on the way in.

Flow: a peer may send what it was granted (`WINDOW`), and is granted more as its bytes arrive, as long as few
of them are unread: `UNREAD_SOFT` while this party computes, `UNREAD_HARD` plus the size of what it waits for
from this peer while it waits. So two parties that each send any one message before they receive cannot lock
each other, and a stream that runs ahead of its reader is held back, not refused.

Threat model: the peer is who it says (`identity`) but may send any bytes, at any pace; the worst it gets is
this party's `ProtocolAborted` naming it. It can make this party hold UNREAD_HARD bytes and what was asked of
it, all really sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from typing import Protocol

from mpc_protocols.errors import CosynthError, PeerLost, ProtocolAborted
from parties.session.transport import frames
from parties.session.transport.channel import SMALL, Channel, Closed
from parties.session.transport.frames import CHUNK, FRAME_COST, HEADER, BadFrame, Header, Kind
from parties.session.transport.inbox import Inbox, Message
from parties.session.transport.reading import Reading
from parties.session.transport.way_in import WayIn

_READ_BUDGET = 8 << 20
_STUCK_S = 60.0


class Hub(Protocol):
    """What a link needs from the party it belongs to."""

    def inbox(self, peer: int, stream: int) -> Inbox:
        """Where this stream's messages go; raises `BadFrame` when the peer opens too many."""

    def depart(self, peer: int) -> None:
        """The peer has said BYE: nothing more comes from it."""

    def on_frame(self, link: Link, kind: Kind, payload: bytes) -> None:
        """In the loop's thread: a control frame other than CREDIT and PING; may raise `BadFrame` or a
        `CosynthError`."""

    def lost(self, link: Link, error: CosynthError | ssl.SSLError | None) -> None:
        """In the loop's thread: the link is over: a violation, a TLS alert, or (None) the peer closed it."""

    def waiting(self) -> bool:
        """Whether a thread of this party waits for a peer."""


class _Outgoing:
    """A message under way: what is left of it."""

    __slots__ = ("depth", "payload", "sent", "sequence", "stream")

    def __init__(self, stream: int, sequence: int, depth: int, payload: memoryview) -> None:
        self.stream, self.sequence, self.depth, self.payload = stream, sequence, depth, payload
        self.sent = 0


class Link:
    """The connection to party `number`, called `name`. Built in the event loop's thread; `start` begins
    reading."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: Channel,
        number: int,
        name: str,
        hub: Hub,
        reading: Reading,
        way_in: WayIn | None = None,
    ) -> None:
        self.number, self.name = number, name
        self.heard_at = loop.time()
        self.ended = False
        self._loop, self._channel, self._hub, self._reading = loop, channel, hub, reading
        self._way_in = way_in
        self._listed = self._farewell = False
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._control: deque[bytes] = deque()
        self._data: deque[_Outgoing] = deque()
        self._queued = 0
        self._may_send = self._granted = frames.WINDOW
        self._unread = self._wanted = 0
        self._writing = self._bye = False
        self._raw = bytearray(HEADER.size)
        self._target = memoryview(self._raw)
        self._header: Header | None = None
        self._inbox: Inbox | None = None
        self._inboxes: dict[int, Inbox] = {}
        self._body = bytearray()

    # Sending: any thread.

    def send(self, stream: int, sequence: int, depth: int, payload: memoryview) -> None:
        """Send what the window and the socket take of one message, and queue the rest; blocks while more than QUEUED
        bytes wait. A payload above 64 KiB must not be modified afterwards.

        Raises `ProtocolAborted` if both sides have been stuck for a minute with full windows (an error in a
        protocol).
        """
        size = len(payload)
        with self._lock:
            if size <= SMALL and self._sent_at_once(stream, sequence, depth, payload):
                return
            while self._queued > frames.QUEUED and not self.ended:
                before = self._queued
                if (
                    not self._room.wait(_STUCK_S)
                    and self._queued == before
                    and self._unread > frames.UNREAD_HARD
                ):
                    raise ProtocolAborted(
                        f"This party and party {self.name} each sent more than {frames.UNREAD_HARD >> 20} MiB "
                        "that the other does not read: a protocol must receive before it sends that much more."
                    )
            if self.ended:
                return  # the reason is told by the hub: it has recorded it before ending links
            if size <= SMALL:
                payload = memoryview(bytes(payload))
            self._data.append(_Outgoing(stream, sequence, depth, payload))
            self._queued += size
        self._pump()

    def _sent_at_once(self, stream: int, sequence: int, depth: int, payload: memoryview) -> bool:
        """Seal and send a small message for which nothing has to wait; False, and nothing is done, if something has
        to. Under the lock."""
        size, channel = len(payload), self._channel
        cost = size + FRAME_COST
        if self._control or self._data or self.ended or self._may_send < cost or not channel.clear:
            return False
        self._may_send -= cost
        with suppress(ssl.SSLError, Closed):  # the reading side meets the same state and tells
            channel.put(HEADER.pack(size, Kind.DATA, sequence, stream, depth, size), payload)
            if not channel.flush():
                self._want_write()
        return True

    def full(self) -> bool:
        """Whether `send` would block now."""
        return self._queued > frames.QUEUED

    def control(self, kind: Kind, payload: bytes = b"") -> None:
        """Send a control frame ahead of all data."""
        with self._lock:
            self._control.append(frames.control(kind, payload))
        self._pump()

    def goodbye(self) -> None:
        """Say BYE behind all data: nothing more will be sent."""
        with self._lock:
            self._bye = True
        self._pump()

    @property
    def idle(self) -> bool:
        """Everything queued, a BYE included, is on its way."""
        with self._lock:
            return not (self._data or self._bye or self._control) and self._channel.clear

    def ping(self) -> None:
        """A sign of life, unless earlier ones still wait (then the peer does not read, and more would only
        pile up)."""
        with self._lock:
            if not self._control and self._channel.clear:
                self._control.append(frames.control(Kind.PING))
        self._pump()

    def _pump(self) -> None:
        """Seal and send frame by frame, the lock released in between so that reading goes on."""
        while True:
            with self._lock:
                if self.ended:
                    return
                try:
                    if not self._channel.flush():
                        self._want_write()
                        return
                    if not self._seal_next():
                        return
                except (ssl.SSLError, Closed):
                    return  # the reading side meets the same state and tells
            # loop: flush what was sealed

    def _seal_next(self) -> bool:
        if self._control:
            self._channel.put(self._control.popleft())
            return True
        if not self._data and self._bye:
            self._bye = False
            self._channel.put(frames.control(Kind.BYE))
            return True
        if not self._data or self._may_send < FRAME_COST:
            return False
        head = self._data[0]
        left = len(head.payload) - head.sent
        length = min(left, CHUNK, self._may_send - FRAME_COST)
        if length < min(left, CHUNK):
            return False  # wait for a whole frame's worth: crumbs cost more than they bring
        header = Header(length, Kind.DATA, head.sequence, head.stream, head.depth, len(head.payload))
        self._channel.put(header.pack(), head.payload[head.sent : head.sent + length])
        head.sent += length
        self._may_send -= length + FRAME_COST
        self._queued -= length
        if head.sent == len(head.payload):
            self._data.popleft()
        if self._queued <= frames.QUEUED:
            self._room.notify_all()
        return True

    def _want_write(self) -> None:
        if not self._writing:
            self._writing = True
            self._loop.call_soon_threadsafe(self._watch_writable)

    def _watch_writable(self) -> None:
        if not self.ended:
            self._loop.add_writer(self._channel.sock.fileno(), self._writable)

    def _writable(self) -> None:
        with self._lock:
            self._writing = False
        self._loop.remove_writer(self._channel.sock.fileno())
        self._pump()

    # Receiving: one thread at a time, which `reading` chooses.

    def start(self) -> None:
        """Begin to read. In the event loop's thread."""
        if self._way_in is not None:
            self._channel.held_back = self._way_in.hold_back(
                self._channel.sock, self._loop, lambda: self._reading.again(self)
            )
            self._reading.leave_to_loop()
        self._listed = True
        self._reading.add(self._channel.sock.fileno(), self)

    def read(self) -> bool:
        """Read what there is, up to a budget; True if some of it may be left inside the TLS object (see
        `Reading`)."""
        budget = _READ_BUDGET
        error: CosynthError | ssl.SSLError | None = None
        try:
            while budget > 0 and not self.ended:
                with self._lock:
                    count = self._channel.read_into(self._target)
                budget -= count
                self._target = self._target[count:]
                while not len(self._target):
                    self._advance()
            self.heard_at = self._loop.time()
            return not self.ended
        except BlockingIOError:
            if budget < _READ_BUDGET:
                self.heard_at = self._loop.time()
            return False
        except Closed:
            pass
        except BadFrame as bad:
            error = ProtocolAborted(f"Party {self.name} sent {bad}; the run was stopped.")
        except MemoryError:
            error = ProtocolAborted(
                f"Party {self.name} sent a message that does not fit into the memory that this party may use; "
                "`plan` says how much a run takes."
            )
        except (CosynthError, ssl.SSLError) as bad:
            error = bad
        self._unlist()
        self._reading.call_in_loop(self._hub.lost, self, error)
        return False

    def _unlist(self) -> None:
        """Read no more."""
        with self._lock:
            listed, self._listed = self._listed, False
        if listed:
            self._reading.remove(self._channel.sock.fileno())

    def _advance(self) -> None:
        """The target is full: a header was read, or a payload."""
        header = self._header
        if header is None:
            self._header = header = frames.parse(self._raw)
            if header.kind is Kind.DATA:
                if self._farewell:
                    raise BadFrame("a message after its BYE")
                with self._lock:
                    self._granted -= header.length + FRAME_COST
                    self._unread += header.length + FRAME_COST
                    if self._granted < 0:
                        raise BadFrame("more than it was allowed to have under way")
                inbox = self._inboxes.get(header.stream)
                if inbox is None:
                    inbox = self._inboxes[header.stream] = self._hub.inbox(self.number, header.stream)
                self._inbox = inbox
                self._target = inbox.place(header)
            else:
                self._body = bytearray(header.length)
                self._target = memoryview(self._body)
            return
        self._header = None
        self._target = memoryview(self._raw)
        if header.kind is Kind.DATA:
            assert self._inbox is not None
            message = self._inbox.filled(header)
            if message is not None:
                self._inbox.ready.put(message)
            self.grant()
        elif header.kind is Kind.CREDIT:
            with self._lock:
                self._may_send = min(self._may_send + frames.parse_credit(bytes(self._body)), 1 << 40)
            self._pump()
        elif header.kind is not Kind.PING:
            if header.kind is Kind.BYE and not self._farewell:
                self._farewell = True  # known at once, whichever thread tells the session
                self._hub.depart(self.number)
            self._reading.call_in_loop(self._control_frame, header.kind, bytes(self._body))

    def _control_frame(self, kind: Kind, payload: bytes) -> None:
        """In the event loop's thread: a control frame for the session."""
        try:
            if not self.ended:
                self._hub.on_frame(self, kind, payload)
        except BadFrame as error:
            self._hub.lost(self, ProtocolAborted(f"Party {self.name} sent {error}; the run was stopped."))
        except CosynthError as error:
            self._hub.lost(self, error)

    # The window: any thread.

    def consumed(self, message: Message, wanted: int = 0) -> None:
        """A message was taken by its receiver, who had said to `want` so many bytes of this peer."""
        with self._lock:
            self._unread -= message.cost
            self._wanted -= wanted
        self.grant()

    def want(self, size: int) -> None:
        """A thread begins to wait for `size` bytes of this peer (negative: it waits no more)."""
        with self._lock:
            self._wanted += size

    def grant(self) -> None:
        """Let the peer send more, if its unread bytes allow it."""
        if frames.WINDOW - self._granted < frames.WINDOW // 4:
            return  # whoever lowers it meanwhile looks here afterwards
        with self._lock:
            more = frames.WINDOW - self._granted
            if more < frames.WINDOW // 4 or self.ended:
                return
            allowed = frames.UNREAD_HARD + self._wanted if self._hub.waiting() else frames.UNREAD_SOFT
            if self._unread > allowed:
                return
            self._granted += more
            self._control.append(frames.credit(more))
        self._pump()

    def refuse(self, error: CosynthError) -> None:
        """End the run, naming this peer, for a message that cannot be accepted."""
        self._loop.call_soon_threadsafe(self._hub.lost, self, error)

    # The end: the event loop's thread.

    def end(self, last: bytes | None = None) -> None:
        """Drop unsent data and read no more; `last` is a final control frame. Follow with `close`."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            self._data.clear()
            with suppress(ssl.SSLError, Closed):
                if last is not None:
                    self._channel.put(last)
                self._channel.flush()
            self._room.notify_all()
        self._unlist()
        self._loop.remove_writer(self._channel.sock.fileno())

    async def close(self, deadline: float) -> None:
        """After `end`: let the last bytes out, tell the peer that nothing more comes, and wait until it has
        heard (else the kernel may throw away what it has not read yet); all within `deadline` seconds."""
        sock = self._channel.sock
        try:
            async with asyncio.timeout(deadline):
                while True:
                    with self._lock:
                        if self._channel.flush():
                            break
                    await asyncio.sleep(0.01)
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_WR)
                    while await self._loop.sock_recv(sock, 1 << 18):
                        pass
        except TimeoutError:
            pass
        finally:
            sock.close()


def silent(name: str, seconds: float) -> PeerLost:
    """The peer has sent nothing, not even a heartbeat."""
    return PeerLost(
        f"Party {name} has been silent for {seconds:.0f} s: its process or its network has stopped."
    )


def overran(seconds: float) -> ProtocolAborted:
    """All peers are alive, each answers in time, and the run takes longer than it may."""
    return ProtocolAborted(
        f"This run has taken more than {seconds:.0f} s since all assembled, far longer than `plan` foretells: somebody may hold "
        "it up, a little with each message; set [session] deadline_factor or deadline_floor_s higher if machines or network are "
        "that slow."
    )


def owing(name: str, seconds: float) -> ProtocolAborted:
    """The peer is alive and does not send what is due, or does not take what is sent."""
    return ProtocolAborted(
        f"Party {name} is alive and has kept this party waiting for {seconds:.0f} s: it, or a party that it waits for itself, "
        "holds up the run; stop the run, and set [session] answer_s higher if its computations take that long."
    )


def connection_closed(name: str) -> PeerLost:
    """The peer's end of the connection closed before the run was over."""
    return PeerLost(
        f"Party {name} closed its connection before the run was over: its process ended or its network failed."
    )
