"""A slow network emulated inside a party's process, without root: for benchmarks only (`bench --net`).

What arrives at this party is taken from the socket at once, stamped, and held back until a slow network would
have brought it:

    start = max(arrival, end of the bytes before it)      end = start + bytes / rate      readable at end + one-way delay

The rate is that of the party's way in, shared by all its links, with a queue of unbounded length before it,
as netem's `rate` has it; a party's way out is the other parties' way in. Every party of a benchmark emulates
the same network, so a round trip costs two delays. Not emulated: the handshake before a link starts, loss,
jitter, TCP's slow start. A party that computes in Python reads its socket late, so times are never too short,
and up to some hundred microseconds too long.

A session is told of it by an argument that only the benchmarks' own programs give (`SessionConfig.way_in`).
Holding back changes when bytes are read and nothing else: neither their order nor what is accepted.
"""

from __future__ import annotations

import asyncio
import math
import select
import selectors
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

_PIECE = 1 << 14
_PIECE_S = 0.002
_TAKEN = 1 << 18
_BUDGET = 8 << 20


@dataclass(frozen=True)
class Network:
    """One-way delay in seconds (0..10) and the rate of a party's way in, bytes per second (from 1,000;
    infinite: not limited)."""

    delay_s: float = 0.0
    bytes_per_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.delay_s <= 10:
            raise ValueError(f"A one-way delay is from 0 to 10 seconds, got {self.delay_s}.")
        if not self.bytes_per_s >= 1000:
            raise ValueError(f"A rate is at least 1,000 bytes per second, got {self.bytes_per_s}.")


class EmulatedWayIn:
    """A party's way in on a slow network (`parties.session.transport.way_in`): when its last byte will have
    come in."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._end = -math.inf
        self.piece = max(_PIECE, int(min(network.bytes_per_s * _PIECE_S, _TAKEN)))

    def due(self, arrival: float, size: int) -> float:
        """When `size` bytes that arrived now can be read."""
        self._end = max(arrival, self._end) + size / self.network.bytes_per_s
        return self._end + self.network.delay_s

    def selector(self) -> selectors.BaseSelector:
        """One that is on time."""
        return _Punctual()

    def hold_back(
        self, sock: socket.socket, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]
    ) -> HeldBack:
        """What stands between the socket of a link and its reader."""
        return HeldBack(self, sock, loop, wake)


def way_in(network: Network) -> EmulatedWayIn | None:
    """For `SessionConfig.way_in`; None if this network slows nothing down."""
    return None if network == Network() else EmulatedWayIn(network)


class _Punctual(selectors.DefaultSelector):
    """epoll rounds its timeouts up to a millisecond; waiting for the epoll object itself by `select` keeps
    microseconds."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the selector's own."""
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)


class HeldBack:
    """Bytes of one link on their way in. Used in the event loop's thread only."""

    def __init__(
        self,
        way: EmulatedWayIn,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        wake: Callable[[], None],
    ) -> None:
        self._way, self._sock, self._loop, self._wake = way, sock, loop, wake
        self._pieces: deque[tuple[float, memoryview]] = deque()
        self._over = False
        self._armed = False

    def receive_into(self, view: memoryview | bytearray) -> int:
        """As `socket.recv_into` of a non-blocking socket, of bytes that are due; 0 at the end of the stream."""
        self._take()
        now = self._loop.time()
        filled, target = 0, memoryview(view)
        while self._pieces and self._pieces[0][0] <= now and filled < len(target):
            due, piece = self._pieces.popleft()
            if not len(piece):  # the end: stays
                self._pieces.appendleft((due, piece))
                break
            count = min(len(piece), len(target) - filled)
            target[filled : filled + count] = piece[:count]
            filled += count
            if count < len(piece):
                self._pieces.appendleft((due, piece[count:]))
        if filled or (self._pieces and self._pieces[0][0] <= now):
            return filled
        if self._pieces and not self._armed:
            self._armed = True
            self._loop.call_at(self._pieces[0][0], self._fire)
        raise BlockingIOError

    def _fire(self) -> None:
        self._armed = False
        self._wake()

    def _take(self) -> None:
        """Everything the socket holds, stamped with now; an error is the end of the stream, after what came
        before."""
        budget = 0 if self._over else _BUDGET
        while budget > 0:
            try:
                taken = memoryview(self._sock.recv(_TAKEN))
            except BlockingIOError:
                return
            except OSError:
                taken = memoryview(b"")
            arrival = self._loop.time()
            for start in range(0, len(taken), self._way.piece):
                piece = taken[start : start + self._way.piece]
                self._pieces.append((self._way.due(arrival, len(piece)), piece))
            if not len(taken):
                self._over = True
                self._pieces.append((self._way.due(arrival, 0), taken))
                return
            budget -= len(taken)
