"""The state of a running party that its threads share, and the wire its protocols see (`mpc_protocols.wire`).

Who learns what: nothing here leaves the process by itself. The tap, if any, sees this party's own messages
whole, as they are sent and as they are received; it is for audits and tests, never on by default.

Failure: the first cause wins and is kept; every pending and later `send` and `receive` of every thread raises
it.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from mpc_protocols.errors import CosynthError, PeerIdentity, ProtocolAborted
from mpc_protocols.wire import Traffic
from parties.session.transport.frames import MAX_DEPTH, MAX_MESSAGE, UNOPENED, BadFrame
from parties.session.transport.inbox import Inbox, Message
from parties.session.transport.link import Link
from parties.session.transport.reading import Reading

Tap = Callable[[str, int, str, int, bytes], None]
"""(direction 'sent' or 'received', peer, stream name, message number, payload): called in the thread that
sends or receives."""


class Party:
    """What the network thread and the protocols' threads share."""

    def __init__(
        self, me: int, names: Sequence[str], computing: int, reading: Reading, tap: Tap | None = None
    ) -> None:
        self.me, self.names, self.computing, self.reading = me, tuple(names), computing, reading
        self.links: dict[int, Link] = {}
        self.session_id = b""
        self.secrets: dict[int, bytes] = {}
        self.announcements: Mapping[str, Mapping[str, object]] = {}
        self.mpyc: Any = None
        self.mpyc_wire: SessionWire | None = None
        self.failure: BaseException | None = None
        self.lapse: Callable[[], PeerIdentity | None] = lambda: None
        self.assembled = False
        self.tap = tap
        self._lock = threading.Lock()
        self._inboxes: dict[tuple[int, int], Inbox] = {}
        self._unopened = dict.fromkeys(range(len(names)), 0)
        self._departed: set[int] = set()
        self._waits: dict[object, tuple[int | None, float]] = {}
        self._clock = self._sent = self._received = self._messages = self._proofs = 0

    def fail(self, error: BaseException) -> bool:
        """Record why the run ends, if nothing has been recorded yet, and wake everybody. True if this is the
        cause."""
        with self._lock:
            if self.failure is not None:
                return False
            self.failure = error
            inboxes = list(self._inboxes.values())
        for inbox in inboxes:
            inbox.ready.put(None)
        self.reading.wake()
        return True

    def raise_failure(self) -> NoReturn:
        """Raise the recorded cause, as an exception of this thread's own."""
        error = self.failure
        if isinstance(error, CosynthError):
            raise type(error)(error.sentence)
        raise ProtocolAborted("This party has stopped because of an internal error.")

    def inbox(self, peer: int, stream: int, opening: bool = False) -> Inbox:
        """The inbox of a stream, made when either side first speaks of it. Raises `BadFrame` past UNOPENED
        streams."""
        with self._lock:
            inbox = self._inboxes.get((peer, stream))
            if inbox is None:
                if not opening:
                    if self._unopened[peer] >= UNOPENED:
                        raise BadFrame(
                            f"messages on more than {UNOPENED} streams that this party does not know"
                        )
                    self._unopened[peer] += 1
                inbox = self._inboxes[peer, stream] = Inbox()
                if self.failure is not None or peer in self._departed:
                    inbox.ready.put(None)
            elif opening and not inbox.opened:
                self._unopened[peer] -= 1
            inbox.opened = inbox.opened or opening
            return inbox

    def depart(self, peer: int) -> None:
        """The peer has said that it sends nothing more: whoever waits for it, now or later, is to know. In
        the reading thread."""
        with self._lock:
            self._departed.add(peer)
            inboxes = [inbox for (source, _), inbox in self._inboxes.items() if source == peer]
        for inbox in inboxes:
            inbox.ready.put(None)

    def waiting(self) -> bool:
        """Whether some thread of this party waits for a peer."""
        return bool(self._waits)

    def overdue(self, seconds: float, paused: float = 0.0) -> int | None:
        """The peer for which some thread has waited longer than that; None if there is none.

        paused: a time that has just passed in which this process stood still, which is held against nobody.
        """
        now = time.monotonic()
        with self._lock:
            if paused:
                self._waits = {wait: (peer, since + paused) for wait, (peer, since) in self._waits.items()}
            late = (
                peer for peer, since in self._waits.values() if peer is not None and now - since > seconds
            )
            return next(late, None)

    @contextmanager
    def waits(self, peer: int | None = None) -> Iterator[None]:
        """Around anything that may block on a peer: while a thread waits, no peer is kept from sending (see
        `link`).

        peer: None if it is no single one; then nobody can be overdue.
        """
        wait = self.begin_wait(peer)
        try:
            yield
        finally:
            self.end_wait(wait)

    def begin_wait(self, peer: int | None) -> object:
        """What `waits` does first; for `end_wait`."""
        wait = object()
        with self._lock:
            self._waits[wait] = peer, time.monotonic()
        for link in tuple(self.links.values()):
            link.grant()
        return wait

    def end_wait(self, wait: object) -> None:
        """What `waits` does last."""
        with self._lock:
            del self._waits[wait]

    def sending(self, size: int) -> int:
        """Count a message; the logical time it carries."""
        with self._lock:
            self._sent += size
            self._messages += 1
            return min(self._clock + 1, MAX_DEPTH)

    def receiving(self, message: Message) -> None:
        """Count a message and advance the logical clock."""
        with self._lock:
            self._received += len(message.payload)
            self._clock = max(self._clock, message.depth)

    def proving(self) -> None:
        """Count a batch of proofs."""
        with self._lock:
            self._proofs += 1

    def traffic(self) -> Traffic:
        """Counters of the whole party."""
        with self._lock:
            return Traffic(self._sent, self._received, self._messages, self._clock, self._proofs)


class SessionWire:
    """A `Wire` over the session's links; see `mpc_protocols.wire` for the contract.

    One stream belongs to one thread at a time. Beyond the contract: `announcements` (what each party said of
    itself at the start), `names`, and `mpyc()`, the MPyC runtime of this process.
    """

    def __init__(self, party: Party, name: str = "", stream: int = 0) -> None:
        self._party, self._name, self._stream = party, name, stream
        self._sequence: dict[int, int] = {}
        self._inboxes: dict[int, Inbox] = {}
        self._forked: set[str] = set()

    @property
    def me(self) -> int:
        """This party's number."""
        return self._party.me

    @property
    def computing(self) -> int:
        """The number of computing parties."""
        return self._party.computing

    @property
    def contributors(self) -> Sequence[int]:
        """Numbers of the parties that contribute but do not compute."""
        return range(self._party.computing, len(self._party.names))

    @property
    def names(self) -> Sequence[str]:
        """Names of all parties, by number."""
        return self._party.names

    @property
    def session_id(self) -> bytes:
        """32 public bytes of this run."""
        return self._party.session_id

    @property
    def announcements(self) -> Mapping[str, Mapping[str, object]]:
        """What every party announced at the start, by name; the same at all parties."""
        return self._party.announcements

    def key(self, peer: int) -> bytes:
        """32 secret bytes shared with one computing party (HKDF-SHA256 of the pair's PRSS key and the session
        id)."""
        secret = self._party.secrets.get(peer)
        if secret is None:
            raise ValueError(
                f"Party {self.me} shares no key with party {peer}: only two computing parties do."
            )
        return hkdf(secret, salt=self.session_id, info=b"cosynth wire key")

    def set_key(self, members: Sequence[int]) -> bytes:
        """32 secret bytes of a set of computing parties (see `Wire.set_key`; HKDF-SHA256 of the set's PRSS
        key)."""
        if self._party.mpyc is None:
            raise ValueError("Only computing parties share keys.")
        secret: bytes = self._party.mpyc.prss_key(tuple(members))
        return hkdf(secret, salt=self.session_id, info=b"cosynth wire set key")

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        """Queue one message (see `Wire.send`); a payload above 64 KiB is not copied. At most 1 GiB."""
        party = self._party
        if party.failure is not None:
            party.raise_failure()
        link = self._link(peer)
        view = memoryview(payload).cast("B")
        if len(view) > MAX_MESSAGE:
            raise ValueError(f"A message of {len(view)} bytes; at most {MAX_MESSAGE} are possible.")
        sequence = self._sequence.get(peer, 0)
        self._sequence[peer] = sequence + 1
        if party.tap is not None:
            party.tap("sent", peer, self._name, sequence, bytes(view))
        depth = party.sending(len(view))
        if link.full():
            with party.waits(peer):
                link.send(self._stream, sequence, depth, view)
        else:
            link.send(self._stream, sequence, depth, view)
        if party.failure is not None:
            party.raise_failure()

    def receive(self, peer: int, size: int) -> memoryview:
        """The next message of `peer`, of exactly `size` bytes (see `Wire.receive`)."""
        payload = self._next(peer, size)
        if len(payload) != size:
            self._odd(peer, f"{len(payload)} bytes where {size} were due")
        return payload

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        """The next message of `peer`, of at most `limit` bytes (see `Wire.receive_up_to`)."""
        payload = self._next(peer, limit)
        if len(payload) > limit:
            self._odd(peer, f"{len(payload)} bytes where at most {limit} were due")
        return payload

    def fork(self, name: str) -> SessionWire:
        """A stream of its own (see `Wire.fork`); a name can be used once per stream."""
        if name in self._forked:
            raise ValueError(f"Stream name {name!r} is in use already.")
        self._forked.add(name)
        digest = hashlib.sha256(
            b"cosynth stream" + self._stream.to_bytes(8, "little") + name.encode()
        ).digest()
        return SessionWire(self._party, f"{self._name}/{name}", int.from_bytes(digest[:8], "little"))

    def check_valid(self) -> None:
        """Before something is released: raise `PeerIdentity` if a certificate, or the CA of one, has expired
        meanwhile."""
        if (lapsed := self._party.lapse()) is not None:
            raise lapsed

    def all_assembled(self) -> None:
        """All parties have their data and their budget: from now on the others may learn why this party
        stops."""
        self._party.assembled = True

    def count_proof(self) -> None:
        """Count a batch of proofs of the whole party."""
        self._party.proving()

    def traffic(self) -> Traffic:
        """Counters of the whole party since the start."""
        return self._party.traffic()

    def mpyc(self) -> Any:
        """The MPyC runtime over these links, for the calling thread (computing parties only; see
        `mpyc_runtime`)."""
        if self._party.mpyc is None:
            raise ValueError("Only computing parties have an MPyC runtime.")
        if self._party.mpyc_wire is None:
            self._party.mpyc_wire = SessionWire(self._party).fork("mpyc")
        return self._party.mpyc.attach(self._party, self._party.mpyc_wire)

    def _link(self, peer: int) -> Link:
        link = self._party.links.get(peer)
        if link is None:
            raise ValueError(f"Party {self.me} has no link with party {peer}.")
        return link

    def listen(self, peer: int) -> memoryview | None:
        """The next message of `peer`, for a thread that only listens: this does not count as waiting (see
        `Party.waits`).

        None once the peer has said goodbye.
        """
        self._party.reading.leave_to_loop()
        return self._arrived(peer, None)

    def _next(self, peer: int, wanted: int) -> memoryview:
        payload = self._arrived(peer, wanted)
        if payload is None:
            error = ProtocolAborted(
                f"Party {self._party.names[peer]} has finished its part while this party still waits for a message "
                "of it; the run was stopped."
            )
            self._link(peer).refuse(error)
            raise error
        return payload

    def _arrived(self, peer: int, wanted: int | None) -> memoryview | None:
        """The peer's next message; None if it has said goodbye and none is left. Raises the session's
        failure."""
        party = self._party
        link = self._link(peer)
        inbox = self._inboxes.get(peer)
        if inbox is None:
            inbox = self._inboxes[peer] = party.inbox(peer, self._stream, opening=True)
        if party.failure is not None:
            party.raise_failure()
        if wanted is not None and inbox.ready.empty():
            link.want(wanted)
            wait = party.begin_wait(peer)  # `waits`, less a generator for each message
            try:
                message = party.reading.wait(inbox)
            finally:
                party.end_wait(wait)
        else:
            wanted, message = 0, inbox.ready.get()
        if message is None:
            link.want(-wanted)
            inbox.ready.put(None)
            if party.failure is not None:
                party.raise_failure()
            return None
        link.consumed(message, wanted)
        party.receiving(message)
        if party.tap is not None:
            party.tap("received", peer, self._name, message.sequence, bytes(message.payload))
        return message.payload

    def _odd(self, peer: int, what: str) -> NoReturn:
        error = ProtocolAborted(
            f"Party {self._party.names[peer]} sent a message of {what}; the run was stopped."
        )
        self._link(peer).refuse(error)
        raise error


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) with 32 bytes of output: one expansion block."""
    extracted = hmac.digest(salt, secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")
