"""A party that sends something else than the protocol says: a wire in memory whose messages are changed on their way."""

from __future__ import annotations

from collections.abc import Callable

from mpc_protocols.memory_wire import MemoryWire
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
    return _BentWire(wire, bend, {})


def change(way: Way, number: int, how: Callable[[bytes], bytes]) -> Bend:
    """Change one message of one way."""
    return lambda on, count, payload: how(payload) if (on, count) == (way, number) else payload


class _BentWire(MemoryWire):
    """A party's wire, or a fork of it, whose messages may be changed on their way."""

    def __init__(self, wire: MemoryWire, bend: Bend, sent: dict[int, int]) -> None:
        """sent: how many messages this party has sent to each other one, on all streams."""
        super().__init__(wire._network, wire._party, wire._stream)
        self._bend, self._sent = bend, sent

    def fork(self, name: str) -> MemoryWire:
        return _BentWire(super().fork(name), self._bend, self._sent)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        number = self._sent.get(peer, 0)
        self._sent[peer] = number + 1
        super().send(peer, self._bend((self.me, peer), number, bytes(payload)))
