"""Small messages: sealed and sent at once where nothing waits, in their order and whole where something does."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mpc_protocols.errors import CosynthError
from parties.session.transport import frames
from parties.session.transport.channel import SMALL, Channel, Closed, PlainChannel, TlsChannel
from parties.session.transport.frames import FRAME_COST, HEADER, Kind
from parties.session.transport.inbox import Inbox, Message
from parties.session.transport.link import Link
from parties.session.transport.reading import Reading
from tests.patience import PATIENCE_S

Ends = tuple[Channel, Channel]


def tls_objects(credentials: Path) -> list[tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]]:
    """Both ends of a connection that have shaken hands, each with what comes in and what goes out."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(credentials / "north.crt", credentials / "north.key")
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    ends = []
    for context in (server, client):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends.append((context.wrap_bio(incoming, outgoing, server_side=context is server), incoming, outgoing))
    for _ in range(3):
        for (tls, _, outgoing), (_, incoming, _) in ((ends[1], ends[0]), (ends[0], ends[1])):
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            incoming.write(outgoing.read())
    return ends


def sockets() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair()
    for sock in pair:
        sock.setblocking(False)
    return pair


@pytest.fixture(params=["plain", "tls"])
def ends(request: pytest.FixtureRequest, credentials: Path) -> Ends:
    """Two channels that are connected."""
    ours, theirs = sockets()
    if request.param == "plain":
        return PlainChannel(ours), PlainChannel(theirs)
    mine, other = tls_objects(credentials)
    return TlsChannel(ours, *mine), TlsChannel(theirs, *other)


class Recorder:
    """A hub that remembers what its link told it, in order."""

    def __init__(self) -> None:
        self.boxes: dict[int, Inbox] = {}
        self.heard: list[Kind] = []
        self.ends: list[CosynthError | ssl.SSLError | None] = []

    def inbox(self, peer: int, stream: int) -> Inbox:
        return self.boxes.setdefault(stream, Inbox())

    def on_frame(self, link: Link, kind: Kind, payload: bytes) -> None:
        self.heard.append(kind)

    def lost(self, link: Link, error: CosynthError | ssl.SSLError | None) -> None:
        self.ends.append(error)

    def waiting(self) -> bool:
        return True

    def depart(self, peer: int) -> None: ...


def between(ends: Ends, act: Callable[[Link], int]) -> tuple[list[Message], Recorder]:
    """What the peer of a link gets of what this does before the peer reads: as many messages of stream 1 as it says. At
    the end all is read, and both sides know the same window."""
    got: list[Message] = []
    hubs = Recorder(), Recorder()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        reading = Reading(loop)
        sender, receiver = (
            Link(loop, channel, 1 - number, "south", hubs[number], reading)
            for number, channel in enumerate(ends)
        )
        messages = act(sender)
        for each in (sender, receiver):
            each.start()
        box = hubs[1].inbox(0, 1)
        while len(got) < messages or Kind.BYE not in hubs[1].heard or sender._may_send != receiver._granted:
            assert not hubs[1].ends
            await asyncio.sleep(0)
            while not box.ready.empty():
                message = box.ready.get_nowait()
                assert message is not None
                receiver.consumed(message)
                got.append(message)
        assert receiver._granted > frames.WINDOW - frames.WINDOW // 4
        for each, channel in zip((sender, receiver), ends, strict=True):
            each.end()
            channel.sock.close()
        reading.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    return got, hubs[1]


@pytest.mark.parametrize("size", [100, 16 << 10, (16 << 10) + 1, SMALL])
def test_a_small_payload_may_be_modified_once_it_is_sent(ends: Ends, size: int) -> None:
    """Also what a full socket takes a part of, and what is queued behind that."""
    expected: list[bytes] = []

    def act(link: Link) -> int:
        buffer, more = bytearray(size), 3
        while more:
            more -= not ends[0].clear
            content = random.randbytes(size)
            buffer[:] = content
            link.send(1, len(expected), 1, memoryview(buffer))
            expected.append(content)
            buffer[:] = bytes(size)
        link.goodbye()
        return len(expected)

    got, _ = between(ends, act)
    assert [bytes(message.payload) for message in got] == expected
    assert [message.sequence for message in got] == list(range(len(expected)))


@pytest.mark.parametrize("waits", ["large", "control", "socket"])
def test_a_small_message_overtakes_nothing(ends: Ends, waits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a large message of its own stream, nor a control frame, nor what a full socket has not taken."""
    sent: list[int] = []

    def act(link: Link) -> int:
        if waits == "socket":
            while ends[0].clear:
                link.send(1, len(sent), 1, memoryview(b"x" * 1000))
                sent.append(1000)
        elif waits == "large":
            link.send(1, 0, 1, memoryview(bytes(9 << 20)))
            sent.append(9 << 20)
        else:
            link._control.append(frames.control(Kind.ABORT, bytes(4)))  # its thread has not come to send it
        for size in (5, 0, 7):
            link.send(1, len(sent), 1, memoryview(bytes(size)))
            sent.append(size)
        link.goodbye()
        return len(sent)

    heard = Recorder.on_frame
    seen: list[tuple[Kind, int]] = []

    def on_frame(self: Recorder, link: Link, kind: Kind, payload: bytes) -> None:
        seen.append((kind, self.boxes[1].ready.qsize() if 1 in self.boxes else 0))
        heard(self, link, kind, payload)

    monkeypatch.setattr(Recorder, "on_frame", on_frame)
    got, hub = between(ends, act)
    assert [len(message.payload) for message in got] == sent
    assert hub.heard == ([Kind.ABORT] if waits == "control" else []) + [Kind.BYE]
    if waits == "control":
        assert seen[0] == (Kind.ABORT, 0)


@pytest.mark.parametrize("size", [0, 100, SMALL])
def test_small_messages_wait_for_the_window_and_none_of_it_is_lost(
    ends: Ends, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is more than the peer has granted waits here."""
    window = 2 << 20 if size else 2 << 12
    for name in ("WINDOW", "UNREAD_SOFT", "UNREAD_HARD"):
        monkeypatch.setattr(frames, name, window)
    several = 3 * window // (size + FRAME_COST)

    def act(link: Link) -> int:
        for number in range(several):
            before = link._may_send
            link.send(1, number, 1, memoryview(bytes(size)))
            assert before - link._may_send in (0, size + FRAME_COST) and link._may_send >= 0
        assert link._data
        link.goodbye()
        return several

    got, hub = between(ends, act)
    assert len(got) == several and not hub.ends


def test_records_of_any_size_come_whole_through_parts_of_any_size(credentials: Path) -> None:
    """Records that end in the middle of what is asked for, that hold several parts, and parts of several records; what
    is left of one is given before the socket is asked, and the end of the stream is told after it."""
    chosen = random.Random(5)
    ours, theirs = sockets()
    mine, (peer, _, outgoing) = tls_objects(credentials)
    channel = TlsChannel(ours, *mine)
    source, taken = bytearray(), bytearray()
    for _ in range(150):
        record = chosen.randbytes(chosen.choice([1, 2, HEADER.size, 100, 5000, 16383, 16384]))
        peer.write(record)
        source += record
    on_its_way = outgoing.read()
    sent = 0
    while len(taken) < len(source):
        part = memoryview(bytearray(chosen.choice([1, HEADER.size, 100, 16383, 16384, 16385, 70000])))
        try:
            count = channel.read_into(part)
        except BlockingIOError:
            if sent < 2000:  # byte by byte
                sent += theirs.send(on_its_way[sent : sent + 1])
            else:
                sent += theirs.send(on_its_way[sent : sent + chosen.randrange(1, 40000)])
            continue
        assert 0 < count <= len(part) and not any(part[count:])
        taken += part[:count]
    assert taken == source
    with pytest.raises(BlockingIOError):
        channel.read_into(memoryview(bytearray(1)))
    peer.write(b"two last")
    theirs.send(outgoing.read())
    theirs.close()
    last = memoryview(bytearray(3))
    words = b""
    with pytest.raises(Closed):
        while True:
            try:
                words += last[: channel.read_into(last)]
            except BlockingIOError:
                continue
    assert words == b"two last"
    ours.close()


def test_what_was_waited_for_is_no_longer_wanted_once_it_is_taken(ends: Ends) -> None:
    """Else each message that is waited for would let the peer send more that is unread, for ever."""

    async def run() -> None:
        reading = Reading(asyncio.get_running_loop())
        link = Link(asyncio.get_running_loop(), ends[0], 1, "south", Recorder(), reading)
        link.want(500)
        assert link._wanted == 500
        link.consumed(Message(memoryview(bytes(500)), 0, 1, 500 + FRAME_COST), 500)
        assert link._wanted == 0
        reading.close()
        for channel in ends:
            channel.sock.close()

    asyncio.run(run())
