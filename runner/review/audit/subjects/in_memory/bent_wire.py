"""A party that sends something else than the protocol says: a wire in memory whose messages are changed.

On their way; or by the party itself, which then computes with what it has sent, as one does that departs from
the protocol.
"""

from __future__ import annotations

from collections.abc import Callable

from mpc_protocols.in_memory.memory_wire import MemoryWire
from mpc_protocols.wire import Wire

Way = tuple[int, int]
"""Sender and receiver."""
Bend = Callable[[Way, int, bytes], bytes]
"""(way, number of the message on this way, payload) -> what is sent instead."""


def bent(wire: Wire, bend: Bend | None, goes_on: bool = False) -> Wire:
    """A party's wire whose messages `bend` changes; the wire itself without one. goes_on: it computes with
    what it has sent."""
    if bend is None:
        return wire
    assert isinstance(wire, MemoryWire)
    return _BentWire(wire, bend, {}, goes_on)


def change(way: Way, number: int, how: Callable[[bytes], bytes]) -> Bend:
    """Change one message of one way."""
    return lambda on, count, payload: how(payload) if (on, count) == (way, number) else payload


class _BentWire(MemoryWire):
    """A party's wire, or a fork of it, whose messages may be changed."""

    def __init__(self, wire: MemoryWire, bend: Bend, sent: dict[int, int], goes_on: bool) -> None:
        """sent: how many messages this party has sent to each other one, on all streams."""
        super().__init__(wire._network, wire._party, wire._stream)
        self._bend, self._sent, self._goes_on = bend, sent, goes_on

    def fork(self, name: str) -> MemoryWire:
        return _BentWire(super().fork(name), self._bend, self._sent, self._goes_on)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        number = self._sent.get(peer, 0)
        self._sent[peer] = number + 1
        changed = self._bend((self.me, peer), number, bytes(payload))
        own = memoryview(payload)
        if self._goes_on and not own.readonly and own.nbytes == len(changed):
            own.cast("B")[:] = changed
        super().send(peer, changed)
