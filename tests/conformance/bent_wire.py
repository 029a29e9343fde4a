"""A party that sends something else than the protocol says: a wire in memory whose messages are changed on their way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from mpc_protocols.memory_wire import Frame, MemoryWire
from mpc_protocols.wire import Wire

Way = tuple[int, int]
"""Sender and receiver."""
Bend = Callable[[Way, int, bytes], bytes]
"""(way, number of the message on this way, payload) -> what is sent instead."""


def bent(wire: Wire, bend: Bend | None) -> Wire:
    """A party's wire whose messages `bend` changes; the wire itself without one."""
    if bend is None:
        return wire
    assert isinstance(wire, MemoryWire)
    return BentWire(wire, bend, {})


def change(way: Way, number: int, how: Callable[[bytes], bytes]) -> Bend:
    """Change one message of one way."""
    return lambda on, count, payload: how(payload) if (on, count) == (way, number) else payload


class BentWire(MemoryWire):
    """A party's wire, or a fork of it, whose messages may be changed on their way."""

    def __init__(self, wire: MemoryWire, bend: Bend, sent: dict[int, int]) -> None:
        """sent: how many messages this party has sent to each other one, on all streams."""
        super().__init__(wire._network, wire._party, wire._stream)
        self._bend, self._sent = bend, sent

    def fork(self, name: str) -> MemoryWire:
        return BentWire(super().fork(name), self._bend, self._sent)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        number = self._sent.get(peer, 0)
        self._sent[peer] = number + 1
        super().send(peer, self._bend((self.me, peer), number, bytes(payload)))


class Ways:
    """A tap that counts the messages of each way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: dict[Way, int] = {}

    def __call__(self, frame: Frame) -> None:
        with self._lock:
            way = frame.sender, frame.receiver
            self.counts[way] = self.counts.get(way, 0) + 1


def misshapen(counts: Mapping[Way, int]) -> list[tuple[Way, int, Callable[[bytes], bytes], str]]:
    """Of each way the first, the last and a message between, turn by turn a byte short or a byte longer; how, in words."""
    changes: list[tuple[Way, int, Callable[[bytes], bytes], str]] = []
    for turn, (way, count) in enumerate(sorted(counts.items())):
        for number in sorted({0, count // 2, count - 1} & set(range(count))):
            if (turn + number) % 2:
                changes.append((way, number, _shorter, "a byte short"))
            else:
                changes.append((way, number, lambda payload: payload + b"\0", "a byte longer"))
    return changes


def _shorter(payload: bytes) -> bytes:
    """An empty message cannot be: it gets a byte."""
    return payload[:-1] if payload else b"x"
