"""Frames and links against hostile bytes, in this process: every header is refused or means what it says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import CosynthError, ProtocolAborted
from parties.session.transport import frames
from parties.session.transport.channel import PlainChannel
from parties.session.transport.frames import (
    CHUNK,
    FRAME_COST,
    HEADER,
    MAX_DEPTH,
    MAX_MESSAGE,
    MAX_PAYLOAD,
    BadFrame,
    Header,
    Kind,
)
from parties.session.transport.inbox import Inbox
from parties.session.transport.link import Link
from parties.session.transport.reading import Reading


@given(
    st.sampled_from(sorted(Kind)),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**20),
    st.integers(0, 2**31),
)
def test_a_header_says_what_was_packed_or_is_refused(
    kind: Kind, sequence: int, stream: int, depth: int, length: int, total: int
) -> None:
    header = Header(length, kind, sequence, stream, depth, total)
    fits = length <= MAX_PAYLOAD[kind]
    if kind is Kind.DATA:
        fits = (
            fits
            and total <= MAX_MESSAGE
            and depth <= MAX_DEPTH
            and length <= total
            and (length > 0 or total == 0)
        )
    else:
        fits = fits and not (sequence or stream or depth or total)
    if fits:
        assert frames.parse(header.pack()) == header
    else:
        with pytest.raises(BadFrame):
            frames.parse(header.pack())


@given(st.binary(min_size=HEADER.size, max_size=HEADER.size))
def test_no_bytes_break_the_parser(raw: bytes) -> None:
    with contextlib.suppress(BadFrame):
        header = frames.parse(raw)
        assert header.length <= CHUNK and header.total <= MAX_MESSAGE


class Recorder:
    """A hub that remembers what a link told it."""

    def __init__(self) -> None:
        self.boxes: dict[int, Inbox] = {}
        self.ends: list[CosynthError | ssl.SSLError | None] = []
        self.control: list[tuple[Kind, bytes]] = []
        self.idle = False
        self.departed: list[int] = []

    def inbox(self, peer: int, stream: int) -> Inbox:
        return self.boxes.setdefault(stream, Inbox())

    def on_frame(self, link: Link, kind: Kind, payload: bytes) -> None:
        self.control.append((kind, payload))

    def lost(self, link: Link, error: CosynthError | ssl.SSLError | None) -> None:
        self.ends.append(error)
        link.end()

    def waiting(self) -> bool:
        return self.idle

    def depart(self, peer: int) -> None:
        self.departed.append(peer)


def feed(
    raw: bytes, then: Callable[[Link, socket.socket], None] | None = None, close: bool = True
) -> Recorder:
    """A link that reads these bytes from its peer."""
    hub = Recorder()

    async def run() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        reading = Reading(loop)
        link = Link(loop, PlainChannel(ours), 1, "south", hub, reading)
        link.start()
        sending = asyncio.ensure_future(loop.sock_sendall(theirs, raw))
        for _ in range(1000):
            if sending.done() or hub.ends:
                break
            await asyncio.sleep(0.005)
        if then is not None:
            await asyncio.sleep(0.05)
            then(link, theirs)
        if close and sending.done() and sending.exception() is None:
            theirs.shutdown(socket.SHUT_WR)
        for _ in range(200):
            if hub.ends or not close:
                break
            await asyncio.sleep(0.005)
        sending.cancel()
        link.end()
        reading.close()
        ours.close()
        theirs.close()

    asyncio.run(run())
    return hub


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=2000))
def test_random_bytes_end_the_link_and_nothing_else(raw: bytes) -> None:
    hub = feed(raw)
    assert len(hub.ends) == 1 and (hub.ends[0] is None or isinstance(hub.ends[0], ProtocolAborted))


def data(stream: int, sequence: int, payload: bytes, total: int | None = None) -> bytes:
    return (
        Header(len(payload), Kind.DATA, sequence, stream, 1, len(payload) if total is None else total).pack()
        + payload
    )


def test_messages_arrive_whole_and_in_order() -> None:
    first, second = bytes(range(256)) * 5000, b"two"
    parts = [data(7, 0, first[at : at + CHUNK], len(first)) for at in range(0, len(first), CHUNK)]
    hub = feed(parts[0] + data(8, 0, second) + b"".join(parts[1:]) + data(7, 1, b""))
    assert hub.ends == [None]
    messages = [
        hub.boxes[7].ready.get_nowait(),
        hub.boxes[7].ready.get_nowait(),
        hub.boxes[8].ready.get_nowait(),
    ]
    assert [bytes(m.payload) for m in messages if m] == [first, b"", second]
    assert [m.sequence for m in messages if m] == [0, 1, 0]


@pytest.mark.parametrize(
    "raw, words",
    [
        (b"\xff" * 36, "unknown kind"),
        (Header(CHUNK + 1, Kind.DATA, 0, 1, 1, CHUNK + 1).pack(), "at most 1048576"),
        (Header(1, Kind.DATA, 0, 1, 1, MAX_MESSAGE + 1).pack(), "at most 1073741824"),
        (Header(0, Kind.DATA, 0, 1, 1, 5).pack(), "does not fit"),
        (Header(6, Kind.DATA, 0, 1, 1, 5).pack(), "does not fit"),
        (data(1, 1, b"x"), "message 1 where message 0 was due"),
        (data(1, 0, b"x") + data(1, 0, b"x"), "message 0 where message 1"),
        (data(1, 0, b"x", 2) + data(1, 0, b"xx", 2), "more bytes than"),
        (data(1, 0, b"x", 2) + data(1, 1, b"x", 2), "another message"),
        (Header(8, Kind.PING).pack(), "at most 0"),
        (Header(3, Kind.CREDIT).pack() + b"abc", "wrong size"),
        (Header(0, Kind.PING, 1).pack(), "fields of a message"),
        (Header(0, Kind.DATA, 0, 1, 2**64 - 1, 0).pack(), "round 18446744073709551615; at most"),
        (Header(0, Kind.DATA, 0, 1, 2**62, 0).pack(), "round 4611686018427387904; at most"),
        (Header(0, Kind.DATA, 0, 1, MAX_DEPTH + 1, 0).pack(), "at most 16777216 are counted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_violation_names_the_peer_and_the_rule(raw: bytes, words: str) -> None:
    hub = feed(raw, close=True)
    (error,) = hub.ends
    assert (
        isinstance(error, ProtocolAborted)
        and error.sentence.startswith("Party south sent ")
        and words in error.sentence
    )


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    """A window and a limit of unread bytes of 2 MiB each."""
    for name in ("WINDOW", "UNREAD_SOFT", "UNREAD_HARD"):
        monkeypatch.setattr(frames, name, 2 << 20)
    return 2 << 20


@pytest.mark.parametrize("size", [0, 100, CHUNK])
def test_more_than_the_window_ends_the_link(narrow: int, size: int) -> None:
    """Nobody here reads: once that much is unread nothing is granted, and what comes all the same is a
    violation. Empty messages count too."""
    allowed = 2 * narrow // (size + FRAME_COST)
    hub = feed(
        b"".join(data(1, n, bytes(size)) for n in range(allowed + 2 + narrow // 4 // (size + FRAME_COST)))
    )
    (error,) = hub.ends
    assert isinstance(error, ProtocolAborted) and "under way" in error.sentence
    held = hub.boxes[1].ready.qsize()
    assert held * (size + FRAME_COST) <= 2 * narrow and held >= allowed // 3


def test_who_reads_may_be_sent_any_amount(narrow: int) -> None:
    """Also who lets two messages lie before each time it reads: then the peer has to wait."""

    async def run() -> int:
        hub, taken = Recorder(), 0
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
        loop = asyncio.get_running_loop()
        reading = Reading(loop)
        link = Link(loop, PlainChannel(ours), 1, "south", hub, reading)
        peer = Link(loop, PlainChannel(theirs), 0, "north", Recorder(), reading)
        for each in (link, peer):
            each.start()
        for number in range(30):
            peer.send(1, number, 1, memoryview(bytes(CHUNK)))
        hub.inbox(1, 1)
        while taken < 30 and not hub.ends:
            await asyncio.sleep(0)
            assert peer._may_send >= 0
            while taken % 2 or hub.boxes[1].ready.qsize() > 1:
                message = hub.boxes[1].ready.get_nowait()
                assert message is not None
                link.consumed(message)
                taken += 1
        for each, sock in ((link, ours), (peer, theirs)):
            each.end()
            sock.close()
        reading.close()
        return taken

    assert asyncio.run(asyncio.wait_for(run(), 10)) == 30


def test_an_announced_gigabyte_costs_nothing_until_it_comes() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    feed(b"".join(Header(1, Kind.DATA, 0, stream, 1, MAX_MESSAGE).pack() + b"x" for stream in range(20)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB; 20 GiB were announced


def test_heartbeats_do_not_pile_up_before_a_peer_that_does_not_read() -> None:
    waiting = []

    def stuff(link: Link, theirs: socket.socket) -> None:
        link.send(1, 0, 1, memoryview(bytes(8 << 20)))
        for _ in range(1000):
            link.ping()
        waiting.append(len(link._control))

    feed(b"", stuff, close=False)
    assert waiting[0] <= 1
