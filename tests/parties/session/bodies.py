"""Bodies of parties that fail, wait, hurry or attack, for the fault tests."""

from __future__ import annotations

import resource
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from mpc_protocols.errors import BudgetRefused, DataRefused, StudyInvalid
from parties.session import SessionWire
from parties.session.admission import identity
from parties.session.transport.frames import CHUNK, FRAME_COST, WINDOW, Header, Kind
from tests.trio import report


def meet(wire: SessionWire) -> str:
    """One exchange with everybody linked."""
    peers = [
        p for p in range(len(wire.names)) if p != wire.me and (p < wire.computing or wire.me < wire.computing)
    ]
    for peer in peers:
        wire.send(peer, b"hello")
    for peer in peers:
        wire.receive(peer, 5)
    return "met"


def wait_for(wire: SessionWire, culprit: int) -> None:
    """Everybody waits for a message of the culprit, the culprit for one of another party: none is sent."""
    meet(wire)
    report("ready")
    wire.receive(culprit if wire.me != culprit else (culprit + 1) % wire.computing, 1)


def owe(wire: SessionWire) -> None:
    """All have assembled, and everybody waits for a message of the next: none is sent."""
    wire.all_assembled()
    wire.receive((wire.me + 1) % wire.computing, 1)


def stream_for_ever(wire: SessionWire, size: int) -> None:
    """Everybody sends large messages to the previous without end."""
    payload = bytes(size)
    for count in range(1 << 30):
        wire.send((wire.me - 1) % 3, payload)
        wire.receive((wire.me + 1) % 3, size)
        if count == 0:
            report("ready")


def compute(wire: SessionWire, culprit: int, seconds: float, python: bool) -> str:
    """The culprit computes (pure Python, or one long NumPy kernel), the others wait for it."""
    meet(wire)
    if wire.me != culprit:
        return bytes(wire.receive(culprit, 4)).decode()
    report("ready")
    end = time.monotonic() + seconds
    if python:
        count = 0
        while time.monotonic() < end:
            count += 1
    else:
        import numpy as np

        matrix = np.ones((6000, 6000))  # one call of several seconds on one core
        while time.monotonic() < end:
            matrix @ matrix
    for peer in range(len(wire.names)):
        if peer != wire.me:
            wire.send(peer, b"done")
    return "done"


def refuse(wire: SessionWire, culprit: int, why: str, assembled: bool = True) -> None:
    """The culprit's budget, data or study is refused (or it has a bug), the others wait for it."""
    meet(wire)
    if assembled:
        wire.all_assembled()
    if wire.me == culprit:
        kinds = {"budget": BudgetRefused, "data": DataRefused, "study": StudyInvalid, "bug": ValueError}
        raise kinds[why]("the budget of 'census' is spent: 4711.")
    wire.receive(culprit, 1)


def late(wire: SessionWire, slow: int, seconds: float) -> str:
    """One party is done later than the others."""
    meet(wire)
    if wire.me == slow:
        time.sleep(seconds)
    return "done"


def leaves_early(wire: SessionWire, mpyc: bool) -> str:
    """Party 1 is done while the others still expect a message of it, inside MPyC or not."""
    meet(wire)
    mpc = wire.mpyc() if mpyc else None
    if wire.me == 1:
        return "done"
    if mpc is not None:
        mpc.run(mpc.output(mpc.input(mpc.SecInt(32)(wire.me), senders=1)))
    wire.receive(1, 1)
    return "not reached"


def last_word(wire: SessionWire, size: int) -> int:
    """Party 0's last act is one large message to a party 1 that is slow to read it."""
    meet(wire)
    if wire.me == 0:
        wire.send(1, bytes(size))
    if wire.me == 1:
        time.sleep(0.5)
        return len(wire.receive(0, size))
    return 0


def last_word_of_one(wire: SessionWire) -> None:
    """Party 1 sends party 0 some messages; both wait for one another."""
    meet(wire)
    if wire.me == 1:
        for _ in range(20):
            wire.send(0, bytes(1000))
    for _ in range(20):
        wire.receive(1 - wire.me, 1000)


def last_words(wire: SessionWire, count: int) -> int:
    """Party 1 sends many messages on streams that party 0 opens later, and is done."""
    streams = [wire.fork(str(number)) for number in range(count)]
    if wire.me == 1:
        for stream in streams:
            stream.send(0, b"x")
        return 0
    time.sleep(0.5)
    return sum(len(stream.receive(1, 1)) for stream in streams)


def mpyc_waits(wire: SessionWire, culprit: int) -> None:
    """Everybody but the culprit waits inside MPyC."""
    meet(wire)
    mpc = wire.mpyc()
    secint = mpc.SecInt(32)
    report("ready")
    if wire.me == culprit:
        time.sleep(60)
    mpc.run(mpc.output(mpc.input(secint(wire.me), senders=culprit)))


def attack(wire: SessionWire, kind: str) -> str:
    """Party 1 breaks the rules of the link to party 0, behind the wire's back; the others wait."""
    meet(wire)
    if wire.me != 1:
        if kind == "memory":
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
        wire.send(1, b"ready")
        wire.receive(1, 1)
        wire.send(1, b"x")
        return "not reached"
    wire.receive(0, 5)
    link = wire._party.links[0]
    channel, lock = link._channel, link._lock

    def put(header: bytes, payload: bytes = b"") -> None:
        with lock:
            channel.put(header, memoryview(payload))
            while not channel.flush():
                time.sleep(0.001)

    stream, sequence = wire._stream, wire._sequence[0]
    if kind == "garbage":
        put(b"\xff" * 36)
    elif kind == "wrong size":
        wire.send(0, b"two bytes and more")
    elif kind == "streams":
        for count in range(1100):
            put(Header(0, Kind.DATA, 0, 1000 + count, 9, 0).pack())
    elif kind == "flood":
        chunk = bytes(CHUNK)
        for _ in range(WINDOW // (CHUNK + FRAME_COST) * 20):
            put(Header(CHUNK, Kind.DATA, 0, 77, 9, 1 << 30).pack(), chunk)
    elif kind == "hello again":
        put(Header(2, Kind.HELLO).pack(), b"{}")
    elif kind.startswith("round "):
        put(Header(1, Kind.DATA, sequence, stream, 2 ** int(kind.split()[1]) - 1, 1).pack(), b"x")
    elif kind == "memory":
        put(Header(1, Kind.DATA, sequence, stream, 9, 1 << 30).pack(), b"x")
    elif kind == "abort":
        put(Header(4, Kind.ABORT).pack(), b"\xff\xff\xff\xff")
    elif kind == "data after goodbye":
        put(Header(0, Kind.BYE).pack())
        put(Header(1, Kind.DATA, sequence, stream, 9, 1).pack(), b"x")
    wire.receive(0, 1)
    return "not reached"


def pickled(wire: SessionWire, marker: str) -> None:
    """Party 1 sends party 0 a pickle that would create a file, where MPyC expects a transfer."""
    meet(wire)
    mpc = wire.mpyc()
    if wire.me == 1:
        import mpyc.runtime  # loaded already: only to misuse its codec

        class Bomb:
            def __reduce__(self) -> tuple[object, tuple[str, str]]:
                return open, (marker, "w")

        import pickle

        mpyc.runtime.pickle.dumps = lambda obj: pickle.dumps(Bomb())
    mpc.run(mpc.transfer("hello"))


def years_later(wire: SessionWire) -> None:
    """At party 0 the clock of certificates leaps while all wait for its message; none comes."""
    wire.all_assembled()
    if wire.me == 0:
        identity.datetime = _Later  # type: ignore[attr-defined]
    wire.receive(1 if wire.me == 0 else 0, 1)


class _Later(datetime):
    """A clock that is far ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=36_500)
